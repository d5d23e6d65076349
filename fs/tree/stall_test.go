package tree

import (
	"testing"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// within1 fails the test unless fn ends soon.
func within1(t *testing.T, what string, fn func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s waits for an operation that is stuck", what)
	}
}

// stalledRig returns a rig whose journal stops at the next disk change of the
// kind once stop was called, says so on stuck, and goes on after release.
func stalledRig(t *testing.T, kind string) (g *rig, stop func(), stuck <-chan struct{}, release func()) {
	t.Helper()
	armed, at, gate := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	g = newRigWith(t, map[string]string{"a": "one", "b": "two", "d/c": "three"}, journal.Options{OnWrite: func(k string) {
		if k != kind {
			return
		}
		select {
		case <-armed:
			close(at)
			<-gate
		default:
		}
	}})
	return g, func() { armed <- struct{}{} }, at, func() { close(gate) }
}

// TestSlowLogWrite has the disk take its time over a record: nothing that only
// reads may wait for it.
func TestSlowLogWrite(t *testing.T) {
	g, stop, stuck, release := stalledRig(t, journal.KindLogWrite)
	a, b := g.id("a"), g.id("b")
	stop()
	done := make(chan error)
	go func() {
		_, err := g.t.Write(g.r, a, []byte("new"), 0)
		done <- err
	}()
	<-stuck
	within1(t, "look-up", func() error { _, err := g.find("d/c"); return err })
	within1(t, "getattr", func() error { _, err := g.t.Getattr(g.r, a); return err })
	within1(t, "read", func() error { _, err := g.t.Read(g.r, b, make([]byte, 3), 0); return err })
	within1(t, "list", func() error {
		return g.t.Readdir(g.r, journal.RootID, 0, true, func(*Dirent) bool { return true })
	})
	within1(t, "forget", func() error { g.t.Forget(b, 1); return nil })
	release()
	g.must(<-done)
	g.wantContent("a", "new")
}

// TestSlowFsync has the disk take its time over a sync: everything else goes on.
func TestSlowFsync(t *testing.T) {
	g, stop, stuck, release := stalledRig(t, journal.KindFsync)
	a := g.id("a")
	g.write("b", "changed")
	stop()
	done := make(chan error)
	go func() { done <- g.t.Fsync(g.r, a, false) }()
	<-stuck
	within1(t, "write", func() error { _, err := g.t.Write(g.r, a, []byte("new"), 0); return err })
	within1(t, "large write", func() error { _, err := g.t.Write(g.r, a, make([]byte, 1<<20), 0); return err })
	within1(t, "create", func() error { _, err := g.t.Create(g.r, journal.RootID, "e", 0o644); return err })
	within1(t, "read", func() error { _, err := g.t.Read(g.r, a, make([]byte, 3), 0); return err })
	within1(t, "snapshot", func() error { g.t.Snapshot(); return nil })
	release()
	g.must(<-done)
}
