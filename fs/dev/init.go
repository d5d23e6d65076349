package dev

import (
	"encoding/binary"
	"fmt"
	"log"
	"log/slog"
	"runtime/debug"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// maxBackground is how many read-ahead requests the kernel sends at once. Those
// that wait for a lower file system that hangs count, and with the last of them
// no file at all could be read any more.
const maxBackground = maxReaders

// Capabilities that are asked for in addition to the library's (ASYNC_READ,
// BIG_WRITES, READDIRPLUS, NO_OPEN_SUPPORT, PARALLEL_DIROPS, MAX_PAGES), and
// those of the library's and the kernel's that must be off.
const (
	wantCaps = fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_NO_OPENDIR_SUPPORT |
		fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_HAS_EXPIRE_ONLY |
		fuse.CAP_POSIX_ACL | fuse.CAP_DONT_MASK | fuse.CAP_SETXATTR_EXT
	banCaps = fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_WRITEBACK_CACHE | fuse.CAP_PASSTHROUGH |
		fuse.CAP_AUTO_INVAL_DATA
)

// needed are the capabilities without which the workspace works, but worse.
var needed = []struct {
	bit  uint64
	text string
}{
	{fuse.CAP_NO_OPEN_SUPPORT, "the kernel sends every open (no FUSE_NO_OPEN_SUPPORT): slower"},
	{fuse.CAP_NO_OPENDIR_SUPPORT, "the kernel sends every opendir (no FUSE_NO_OPENDIR_SUPPORT): slower"},
	{fuse.CAP_EXPLICIT_INVAL_DATA, "the kernel drops cached data by itself (no FUSE_EXPLICIT_INVAL_DATA): slower"},
	{fuse.CAP_HANDLE_KILLPRIV_V2, "the kernel clears set-id bits by itself (no FUSE_HANDLE_KILLPRIV_V2)"},
	{fuse.CAP_MAX_PAGES, "requests are limited to 128 KiB (no FUSE_MAX_PAGES): slower"},
}

// newServer makes the library's server with the capabilities of ours.
func newServer(fsys fuse.RawFileSystem, idmap bool, logger *slog.Logger) *fuse.ProtocolServer {
	return fuse.NewProtocolServer(fsys, &fuse.MountOptions{
		Name:                     "winkfs",
		MaxWrite:                 MaxWrite,
		MaxBackground:            maxBackground,
		EnableSymlinkCaching:     true,
		ExplicitDataCacheControl: true,
		IDMappedMount:            idmap,
		ExtraCapabilities:        wantCaps,
		DisabledCapabilities:     banCaps,
		Logger:                   log.New(slogWriter{logger}, "", 0),
		PanicHandler: func(p any) fuse.Status {
			logger.Error("fuse: panic in handler", "panic", p, "stack", string(debug.Stack()))
			return fuse.EIO
		},
	})
}

// slogWriter passes the library's own messages on.
type slogWriter struct{ log *slog.Logger }

func (w slogWriter) Write(p []byte) (int, error) {
	w.log.Warn("fuse: library", "msg", string(p))
	return len(p), nil
}

// handshake answers the INIT request, which the kernel sends first, and
// returns its bytes and the capabilities that both sides agreed on.
func handshake(fd int, srv server) (request []byte, caps uint64, err error) {
	b, err := newBuffer(true)
	if err != nil {
		return nil, 0, err
	}
	defer b.free()
	r := &reader{loop: &loop{fd: fd, srv: srv, log: slog.New(slog.DiscardHandler)}, buf: b}
	if err := r.read(); err != nil {
		return nil, 0, fmt.Errorf("read INIT: %w: %w", ErrInit, err)
	}
	if op := header(b.in()).opcode(); op != opInit {
		return nil, 0, fmt.Errorf("read INIT: %w: first request has opcode %d", ErrInit, op)
	}
	request = append([]byte(nil), b.in()...)
	n, ok := r.dispatch()
	if !ok {
		return nil, 0, fmt.Errorf("answer INIT: %w", ErrInit)
	}
	caps, err = agreed(b.out()[:n])
	if err != nil {
		return nil, 0, err
	}
	if _, err := unix.Write(fd, b.out()[:n]); err != nil {
		return nil, 0, fmt.Errorf("answer INIT: %w: %w", ErrInit, err)
	}
	return request, caps, nil
}

// agreed reads the flags of an INIT reply (struct fuse_init_out: flags at 12,
// flags2 at 32) and refuses those that would lose data: with ATOMIC_O_TRUNC a
// truncating open would be left to an OPEN that never comes.
func agreed(reply []byte) (uint64, error) {
	if len(reply) < outHeader+36 || binary.NativeEndian.Uint32(reply[4:]) != 0 {
		return 0, fmt.Errorf("answer INIT: %w: the kernel's version is not supported", ErrInit)
	}
	body := reply[outHeader:]
	caps := uint64(binary.NativeEndian.Uint32(body[12:])) | uint64(binary.NativeEndian.Uint32(body[32:]))<<32
	if bad := caps & banCaps; bad != 0 {
		return 0, fmt.Errorf("answer INIT: %w: capabilities %#x must be off", ErrInit, bad)
	}
	return caps, nil
}
