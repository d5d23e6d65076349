package hydrate

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// event is one inotify event. An empty name means the watched directory itself.
type event struct {
	wd   int32
	mask uint32
	name string
}

// decode calls fn for each event in buf, as read(2) of an inotify descriptor
// fills it. It reports false when buf does not end at the end of an event.
func decode(buf []byte, fn func(event)) bool {
	for len(buf) > 0 {
		if len(buf) < unix.SizeofInotifyEvent {
			return false
		}
		n := uint64(binary.NativeEndian.Uint32(buf[12:]))
		rest := buf[unix.SizeofInotifyEvent:]
		if n > uint64(len(rest)) {
			return false
		}
		name, _, _ := bytes.Cut(rest[:n], []byte{0})
		fn(event{
			wd:   int32(binary.NativeEndian.Uint32(buf)),
			mask: binary.NativeEndian.Uint32(buf[4:]),
			name: string(name),
		})
		buf = rest[n:]
	}
	return true
}
