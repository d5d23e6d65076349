package model

import (
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
	// Again mounts the subject anew; nil = it is no mount.
	Again func()
}

// MountPair returns a fresh workspace over a lower tree beside a plain copy.
func MountPair(t testing.TB, e *harness.Env, name string) *Pair {
	t.Helper()
	lower, plain := filepath.Join(e.Dir, "lower-"+name), filepath.Join(e.Dir, "plain-"+name)
	mkdir(t, lower)
	MakeLower(t, lower)
	harness.CopyTree(t, lower, plain)
	w := e.NewWorkspace(name, lower)
	return &Pair{Subject: w.Mount, Reference: plain, Source: lower, Again: func() { w.Umount(); w.Remount() }}
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
