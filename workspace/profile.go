package workspace

import (
	"os"

	"github.com/winkfs/winkfs/fs/dev"
	"github.com/winkfs/winkfs/fs/tree"
)

// Profiles: what the files of a workspace may be.
const (
	// ProfileDefault refuses device nodes, set-id bits and the extended
	// attributes that mean something to the kernel.
	ProfileDefault = "default"
	// ProfilePOSIXFull keeps them all, as an ordinary file system does: for root,
	// for system trees and for test suites. What runs outside of the sandbox can
	// use them there.
	ProfilePOSIXFull = "posix-full"
)

// full reports whether the workspace keeps all that a file system can.
func (c *Config) full() bool { return c.Profile == ProfilePOSIXFull }

// checkProfile refuses profiles that are not known, and those that only root
// may use.
func (c *Config) checkProfile() error {
	switch {
	case c.Profile == "" || c.Profile == ProfileDefault:
		c.Profile = ""
		return nil
	case !c.full():
		return Fail(CodeUsage, "choose profile %q: known are %s and %s", c.Profile, ProfileDefault, ProfilePOSIXFull)
	case os.Geteuid() != 0 || !dev.InitialUserNS():
		return Fail(CodeRefused, "choose profile %s: it is for root only, as it keeps device nodes and set-id programs", c.Profile).
			Hinted("leave the profile out, or mount as root")
	}
	return nil
}

// profile is what the tree is told.
func (c *Config) profile() tree.Profile {
	if c.full() {
		return tree.ProfileFull
	}
	return tree.ProfileDefault
}
