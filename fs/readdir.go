package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/winkfs/winkfs/fs/tree"
)

// ReadDir answers READDIR.
func (a *adapter) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return a.list("readdir", in, false, func(e *tree.Dirent) bool {
		return out.AddDirEntry(dirent(e))
	})
}

// ReadDirPlus answers READDIRPLUS. An entry with node number 0 carries no
// attributes; the kernel then takes only its name.
func (a *adapter) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	ttl := a.tree.Ttl(node(&in.InHeader))
	return a.list("readdirplus", in, true, func(e *tree.Dirent) bool {
		entry := out.AddDirLookupEntry(dirent(e))
		if entry == nil {
			return false
		}
		if e.Stat != nil {
			a.encode(entry, e.Stat, ttl)
		}
		return true
	})
}

// list emits the entries behind the request's cookie. An error after entries
// were emitted waits for the next request: the entries may count as looked up.
func (a *adapter) list(op string, in *fuse.ReadIn, plus bool, add func(*tree.Dirent) bool) fuse.Status {
	n := 0
	err := a.tree.Readdir(request(&in.InHeader), node(&in.InHeader), in.Offset, plus, func(e *tree.Dirent) bool {
		if !add(e) {
			return false
		}
		n++
		return true
	})
	if n > 0 {
		return fuse.OK
	}
	return a.status(op, &in.InHeader, "", err)
}

// dirent converts an entry. The cookie goes to the kernel as it is: the library
// makes up its own for 0 only, which is no cookie of the tree's.
func dirent(e *tree.Dirent) fuse.DirEntry {
	return fuse.DirEntry{Name: e.Name, Ino: uint64(e.ID), Mode: e.Mode, Off: e.Cookie}
}
