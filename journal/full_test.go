package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of the size, if that is permitted.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Geteuid() == 0 && os.Getenv("WINKFS_REQUIRE") != "" {
			t.Fatalf("WINKFS_REQUIRE is set and root can't mount a small disk: %v", err)
		}
		t.Skipf("mount of a small disk: %v (faults are injected in TestDiskFull)", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// On a disk that is really full, with the database's own writes failing too,
// calls fail, nothing is lost, and the store works again once there is space.
func TestReallyFullDisk(t *testing.T) {
	disk := smallDisk(t, "2m")
	dir := filepath.Join(disk, "state")
	s := mustCreate(t, dir, Options{SegmentSize: 64 << 10, PackSize: 64 << 10, Clock: tick()})
	h := newHistory(6, s)
	failed := 0
	for round := range 4 {
		for range 100 {
			h.next(t)
		}
		filler := filepath.Join(disk, "filler")
		for size := 1 << 20; size > 0; size /= 2 {
			f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			f.Write(make([]byte, size))
			f.Close()
		}
		for range 20 {
			n, err := s.Append(writeRecord(5, 0, 16000), make([]byte, 16000))
			if err == nil {
				h.st.Apply(lastRecord(t, s, n))
				continue
			}
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("round %d: append: %v", round, err)
			}
			failed++
		}
		if err := s.Commit(); err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("round %d: commit: %v", round, err)
		}
		verifyClean(t, dir)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	if failed == 0 {
		t.Fatal("the disk was never full")
	}
	mustClose(t, s)
	verifyClean(t, dir)
	sameState(t, "reopened", mustOpen(t, dir, Options{}).State(), h.st)
}

func lastRecord(t *testing.T, s *Store, seq Seq) *Record {
	t.Helper()
	var last *Record
	if err := s.Records(seq, seq, func(r *Record) error { last = r; return nil }); err != nil {
		t.Fatal(err)
	}
	return last
}
