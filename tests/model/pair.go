package model

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// omit is what the two trees of a pair may differ in.
const omit = harness.OmitMtime | harness.OmitIno

// Pair is two equal directories.
type Pair struct {
	Subject   string
	Reference string
	// Source is the lower directory, which must stay as it is; "" = none.
	Source string
	// Procs is how many processes of their own work in the pair; 0 = the test's.
	Procs int
	// Again mounts the subject anew, Restart does so after it has killed the
	// daemon; nil = it is no mount.
	Again, Restart func()
}

// MountPair returns a fresh workspace over a lower tree beside a plain copy.
func MountPair(t testing.TB, e *harness.Env, name string) *Pair {
	t.Helper()
	lower := filepath.Join(e.Dir, "lower-"+name)
	mkdir(t, lower)
	MakeLower(t, lower)
	return mountPair(t, e, name, lower)
}

func mountPair(t testing.TB, e *harness.Env, name, lower string) *Pair {
	t.Helper()
	plain := filepath.Join(e.Dir, "plain-"+name)
	harness.CopyTree(t, lower, plain)
	w := e.NewWorkspace(name, lower)
	return &Pair{
		Subject: w.Mount, Reference: plain, Source: lower,
		Again:   func() { w.Umount(); w.Remount() },
		Restart: func() { w.Kill(); w.Remount() },
	}
}

// MountPairs is MountPair over a tree that has n equal parts.
func MountPairs(t testing.TB, e *harness.Env, name string, n int) *Pair {
	t.Helper()
	lower := filepath.Join(e.Dir, "lower-"+name)
	for i := range n {
		mkdir(t, part(lower, i))
		MakeLower(t, part(lower, i))
	}
	return mountPair(t, e, name, lower)
}

func part(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("part%d", i)) }

// Parts returns the pairs of the n parts.
func (p *Pair) Parts(n int) []*Pair {
	var out []*Pair
	for i := range n {
		out = append(out, &Pair{Subject: part(p.Subject, i), Reference: part(p.Reference, i)})
	}
	return out
}

// PlainPair returns two plain copies below dir and a temporary directory.
func PlainPair(t testing.TB, dir, name string) *Pair {
	t.Helper()
	p := &Pair{Subject: filepath.Join(dir, "subject-"+name), Reference: filepath.Join(harness.TempDir(t), "plain")}
	mkdir(t, p.Subject)
	MakeLower(t, p.Subject)
	harness.CopyTree(t, p.Subject, p.Reference)
	return p
}

func mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}
