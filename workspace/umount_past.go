package workspace

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/winkfs/winkfs/fs/dev"
)

// IsPastMount reports whether a past state is mounted at the path: MountAt names
// such mounts ID@POINT.
func IsPastMount(path string) bool {
	mounts, err := dev.Mounts()
	if err != nil {
		return false
	}
	path = realPath(path)
	past := false
	for _, m := range mounts {
		if m.Dir == path {
			past = strings.Contains(m.Source, "@")
		}
	}
	return past
}

// realPath returns the path from the root without symbolic links.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return resolved(path)
}

// UnmountPast unmounts a past state. Who serves it notices. When it is busy and
// lazy isn't asked for, the result lists who holds it and it stays.
func UnmountPast(path string, lazy bool) (*UnmountResult, error) {
	path = realPath(path)
	res := &UnmountResult{Schema: "winkfs.umount/v1", Mountpoint: path}
	err := dev.Unmount(path, lazy)
	if errors.Is(err, dev.ErrBusy) {
		res.Holders = holders(path)
		return res, nil
	}
	if err != nil {
		return nil, mountError(path, err)
	}
	return res, nil
}
