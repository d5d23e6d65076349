package hydrate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestWalk(t *testing.T) {
	root := t.TempDir()
	for i := range 10 {
		dir := filepath.Join(root, fmt.Sprint("d", i), "sub")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(root, "d0", "up")); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name      string
		max, want int
	}{
		{"all", 1000, 31},
		{"bounded", 15, 15},
		{"none", 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if n, err := Walk(root, c.max); err != nil || n != c.want {
				t.Errorf("Walk saw %d, %v; want %d", n, err, c.want)
			}
		})
	}
	if _, err := Walk(filepath.Join(root, "missing"), 1); err == nil {
		t.Error("walking a missing directory: no error")
	}
}
