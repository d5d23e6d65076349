package stall

import (
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/winkfs/winkfs/tests/harness"
)

// The lower is served by a process of its own, the test binary started again
// with these: what waits for it can't be killed, so if it were the test that is
// to be killed, nobody would be left to answer.
const (
	envSource = "STALL_SOURCE"
	envMount  = "STALL_MOUNT"
	envGate   = "STALL_GATE"
)

// startLower shows dir at mnt, with all below "hung" hanging while the gate is
// there, until the test ends.
func startLower(t *testing.T, dir, mnt, gate string) {
	t.Helper()
	cmd := osexec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envSource+"="+dir, envMount+"="+mnt, envGate+"="+gate)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("serve the lower file system: %v", err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	for range 1000 {
		if harness.IsMounted(mnt) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the lower file system does not appear")
}

// serveLower serves until its input ends.
func serveLower(dir, mnt, gate string) int {
	root := &fs.LoopbackRoot{Path: dir}
	top := &node{LoopbackNode: &fs.LoopbackNode{RootData: root}, gate: gate}
	root.RootNode = top
	srv, err := fs.Mount(mnt, top, &fs.Options{MountOptions: fuse.MountOptions{FsName: "lower", Name: "stall", DirectMount: true}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mount the lower file system:", err)
		return 1
	}
	io.Copy(io.Discard, os.Stdin)
	if srv.Unmount() != nil {
		return 1
	}
	return 0
}

// node is a file of the lower file system.
type node struct {
	*fs.LoopbackNode
	gate string
}

// WrapChild makes what is below a node a node, too.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{ops.(*fs.LoopbackNode), n.gate}
}

// wait waits for the gate to open.
func (n *node) wait() {
	if p := n.Path(n.Root()); p != "hung" && !strings.HasPrefix(p, "hung/") {
		return
	}
	for {
		if _, err := os.Lstat(n.gate); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.wait()
	return n.LoopbackNode.Lookup(ctx, name, out)
}

func (n *node) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.wait()
	return n.LoopbackNode.Getattr(ctx, f, out)
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.wait()
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	return &handle{f, n}, fuse.FOPEN_DIRECT_IO, errno
}

// OpendirHandle hides the node's own, which would pass by the gate.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.wait()
	return n.LoopbackNode.OpendirHandle(ctx, flags)
}

// handle is an open file of the lower file system.
type handle struct {
	fs.FileHandle
	node *node
}

func (h *handle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.node.wait()
	return h.FileHandle.(fs.FileReader).Read(ctx, dest, off)
}

func (h *handle) Flush(ctx context.Context) syscall.Errno {
	h.node.wait()
	return h.FileHandle.(fs.FileFlusher).Flush(ctx)
}

func (h *handle) Release(ctx context.Context) syscall.Errno {
	return h.FileHandle.(fs.FileReleaser).Release(ctx)
}
