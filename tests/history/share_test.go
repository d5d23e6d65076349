package history

import (
	"bytes"
	"os"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// Versions of a large file share the blocks that they have in common, before
// and after a collection.
func TestVersionsShareBlocks(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	e := harness.New(t)
	w := e.NewWorkspace("share", lowerTree(t, e))
	const size, block, versions = 16 << 20, 4 << 10, 20
	path := w.Mount + "/large"
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, size), 0o644); err != nil {
		t.Fatal(err)
	}
	w.MustIn("checkpoint", "first")
	begin := stored(t, w)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range versions {
		if _, err := f.WriteAt(bytes.Repeat([]byte{byte(i + 2)}, block), int64(i)*size/versions); err != nil {
			t.Fatal(err)
		}
		w.MustIn("checkpoint", "v"+string(rune('a'+i)))
	}
	if grown := stored(t, w) - begin; grown > 2*versions*block+1<<20 {
		t.Errorf("%d versions with a block of difference each take %d bytes", versions, grown)
	}
	for i := range versions {
		w.MustIn("checkpoint", "--delete", "v"+string(rune('a'+i)))
	}
	w.MustIn("checkpoint", "--delete", "first")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.MustIn("gc", "--bytes", "1")
	if now := stored(t, w); now > size+4<<20 {
		t.Errorf("after a collection a file of %d bytes takes %d", size, now)
	}
	harness.DropCaches()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file differs after a collection: %v", err)
	}
}

// stored returns what log, contents and database take.
func stored(t *testing.T, w *harness.Workspace) int64 {
	t.Helper()
	var s struct {
		Journal int64 `json:"journal_bytes"`
		Object  int64 `json:"object_bytes"`
	}
	w.JSON(&s, "status", "-w", w.Name, "--json")
	return s.Journal + s.Object
}
