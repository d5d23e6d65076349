package fs

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/winkfs/winkfs/journal"
)

// message builds a request as the kernel sends it: struct fuse_in_header and
// what follows.
func message(opcode uint32, node uint64, body []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(40+len(body)))
	b = binary.NativeEndian.AppendUint32(b, opcode)
	b = binary.NativeEndian.AppendUint64(b, 2) // unique
	b = binary.NativeEndian.AppendUint64(b, node)
	for range 4 { // uid, gid, pid, padding
		b = binary.NativeEndian.AppendUint32(b, 0)
	}
	return append(b, body...)
}

// words encodes numbers of 64 bits.
func words(ns ...uint64) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.NativeEndian.AppendUint64(b, n)
	}
	return b
}

// FuzzRequest sends requests with any numbers and names to the real tree, as no
// kernel would: whatever comes, there is one answer, with an error number that
// the kernel takes, and no panic. The tree is one for all requests.
func FuzzRequest(f *testing.F) {
	seed := func(opcode uint32, body ...[]byte) {
		for node := range uint8(6) {
			f.Add(opcode, node, bytes.Join(body, nil))
		}
	}
	name := []byte("name\x00")
	seed(1, name)                                          // LOOKUP
	seed(2, words(1))                                      // FORGET
	seed(3, words(0, 0))                                   // GETATTR
	seed(4, words(1<<3, 0, 1<<62, 0, 1, 2, 3, 4, 5, 6, 7)) // SETATTR
	seed(6, []byte("target\x00"), name)                    // SYMLINK
	seed(8, words(0o100644, 0), name)                      // MKNOD
	seed(9, words(0o755), name)                            // MKDIR
	seed(10, name)                                         // UNLINK
	seed(11, name)                                         // RMDIR
	seed(12, words(1), []byte("a\x00b\x00"))               // RENAME
	seed(13, words(3), name)                               // LINK
	seed(15, words(0, 1<<40, 4096, 0, 0))                  // READ
	seed(16, words(0, 1<<62, 4, 0, 0), []byte("data"))     // WRITE
	seed(17)                                               // STATFS
	seed(20, words(0, 1))                                  // FSYNC
	seed(21, words(4), []byte("user.a\x00data"))           // SETXATTR
	seed(22, words(100), []byte("user.a\x00"))             // GETXATTR
	seed(23, words(100))                                   // LISTXATTR
	seed(24, []byte("user.a\x00"))                         // REMOVEXATTR
	seed(28, words(0, 0, 4096, 0, 0))                      // READDIR
	seed(35, words(0, 0o644), name)                        // CREATE
	seed(39, words(0, 0, 0, 0))                            // IOCTL
	seed(42, words(1, 3, 1<<63))                           // BATCH_FORGET
	seed(43, words(0, 1<<63-1, 1, 0))                      // FALLOCATE
	seed(44, words(0, 1<<63, 4096, 0, 0))                  // READDIRPLUS
	seed(45, words(1, 7), []byte("a\x00b\x00"))            // RENAME2
	seed(46, words(0, 1<<63-1, 3))                         // LSEEK
	seed(47, words(0, 0, 3, 0, 1<<40, 1<<40, 0))           // COPY_FILE_RANGE
	seed(51, words(0, 0o644), name)                        // TMPFILE
	seed(52, words(0, 0, 0xfff))                           // STATX
	seed(12, words(1), []byte("../../etc\x00\x00"))        // names that can't be
	seed(11, []byte{0})
	seed(35, words(0, 0o644), bytes.Repeat([]byte{'/', 255}, 99)) // and without an end

	source := f.TempDir()
	for _, name := range []string{"a", "b/c"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, name), []byte("lower"), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	tr, store, err := openTree(source, filepath.Join(f.TempDir(), "state"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		tr.Close()
		store.Close()
	})
	var panicked any
	srv := fuse.NewProtocolServer(&adapter{tree: tr, log: slog.New(slog.NewTextHandler(io.Discard, nil))}, &fuse.MountOptions{
		MaxWrite:     1 << 20,
		PanicHandler: func(p any) fuse.Status { panicked = p; return fuse.EIO },
	})
	out := make([]byte, 2<<20)
	send := func(opcode uint32, node uint64, body []byte) []byte {
		n, code := srv.HandleRequest([][]byte{message(opcode, node, body)}, [][]byte{out})
		if !code.Ok() { // malformed: the loop answers EIO
			return nil
		}
		return out[:n]
	}
	version := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, 7), 40)
	send(26, 0, append(version, words(1<<17, 0, 0, 0, 0, 0, 0)...))
	nodes := []uint64{0, 1, uint64(lookup(f, tr, "a")), uint64(lookup(f, tr, "b")), 1 << 63, 1<<64 - 1}
	f.Fuzz(func(t *testing.T, opcode uint32, node uint8, body []byte) {
		if opcode == 26 || opcode == 36 || len(body) > 1<<16 { // INIT comes once, INTERRUPT not at all
			return
		}
		panicked = nil
		reply := send(opcode, nodes[int(node)%len(nodes)], body)
		if panicked != nil {
			t.Errorf("opcode %d, body %q: panic: %v", opcode, body, panicked)
		}
		if len(reply) == 0 {
			return
		}
		if l := binary.NativeEndian.Uint32(reply); int(l) != len(reply) {
			t.Errorf("opcode %d: the reply has %d bytes and says %d", opcode, len(reply), l)
		}
		if e := -int32(binary.NativeEndian.Uint32(reply[4:])); e < 0 || e >= maxErrno {
			t.Errorf("opcode %d: errno %d", opcode, e)
		}
		if u := binary.NativeEndian.Uint64(reply[8:]); u != 2 {
			t.Errorf("opcode %d: answers request %d", opcode, u)
		}
		send(3, 1, words(0, 0)) // nothing is locked for good
	})
}

func lookup(t testing.TB, tr Tree, name string) journal.NodeID {
	t.Helper()
	s, err := tr.Lookup(request(&fuse.InHeader{}), journal.RootID, name)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// FuzzTimes converts times from the kernel and back.
func FuzzTimes(f *testing.F) {
	f.Add(uint64(0), uint32(0))
	f.Add(uint64(1<<63), uint32(999_999_999))
	f.Add(^uint64(0), uint32(1))
	f.Fuzz(func(t *testing.T, sec uint64, nsec uint32) {
		nsec %= 1e9
		at := join(sec, nsec)
		s, n := split(at)
		if n >= 1e9 {
			t.Errorf("join %d, %d: %d nanoseconds", int64(sec), nsec, n)
		}
		const limit = (1<<63-1)/1_000_000_000 - 1
		if int64(sec) < limit && int64(sec) > -limit && (s != sec || n != nsec) {
			t.Errorf("join %d, %d gives back %d, %d", int64(sec), nsec, int64(s), n)
		}
	})
}
