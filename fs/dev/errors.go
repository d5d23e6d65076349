package dev

import "errors"

// Errors of mounting and unmounting. They are wrapped with the path, the
// system's error and, where there is one, the mend.
var (
	ErrNoDevice       = errors.New("the FUSE device cannot be used")
	ErrNoFusermount   = errors.New("fusermount3 is not installed")
	ErrPermission     = errors.New("mounting is not permitted")
	ErrMountPoint     = errors.New("not usable as a mount point")
	ErrMountPointBusy = errors.New("a workspace is mounted there already")
	ErrStale          = errors.New("a workspace whose daemon died is mounted there")
	ErrNotMounted     = errors.New("no workspace is mounted there")
	ErrBusy           = errors.New("the mount is in use")
	ErrInit           = errors.New("kernel and daemon do not agree on the FUSE protocol")
	ErrClosed         = errors.New("the connection is closed")
)
