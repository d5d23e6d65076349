package exec

// planIDs chooses who the payload is.
//
// The initial namespace's root never lends its id: the payload is SandboxID and
// the mount is id-mapped so that the owner's files are its own. Anyone else's
// payload keeps the kernel id of the daemon, which is the files' owner. Inside,
// the payload sees the owner's number, so that names and modes mean the same on
// both sides.
func planIDs(s Spec, h Host) (IDs, error) {
	if !h.Root() {
		return userIDs(h)
	}
	if l := h.Layer(layerIdmap); !l.OK {
		return IDs{}, refuse(layerIdmap, l.Mend,
			"%s; without it the command would have to run as the host's root, which winkfs never does", l.Detail)
	}
	return IDs{
		Kernel: Owner{SandboxID, SandboxID},
		Shown:  Owner{shown(s.Owner.UID), shown(s.Owner.GID)},
		Map:    true,
		Files:  s.Owner,
	}, nil
}

func userIDs(h Host) (IDs, error) {
	if h.OuterUID == 0 || h.Initial && h.UID == 0 {
		return IDs{}, refuse(layerNS, "start winkfs as an ordinary user, or as root outside any user namespace",
			"the daemon is the host's root inside a user namespace that has no other id to run the command as")
	}
	return IDs{
		Kernel: Owner{h.UID, h.GID},
		Shown:  Owner{shown(h.OuterUID), shown(h.OuterGID)},
	}, nil
}

// shown replaces root's number.
func shown(id uint32) uint32 {
	if id == 0 {
		return ShownID
	}
	return id
}
