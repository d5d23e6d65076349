package harness

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync"
)

// Binary returns the path of the winkfs binary: WINKFS_BIN, or one that is
// built once for each test process.
func Binary() (string, error) { return binary() }

var binary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("WINKFS_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", "winkfs", "main.go")); err != nil {
		return "", fmt.Errorf("find program: %w", err)
	}
	dir, err := os.MkdirTemp("", "winkfs-bin-")
	if err != nil {
		return "", err
	}
	atExit(func() { os.RemoveAll(dir) })
	// An ordinary user's second pass runs the same file.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "winkfs")
	cmd := osexec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", bin, "./cmd/winkfs")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build winkfs: %w\n%s", err, out)
	}
	return bin, nil
})

// RepoRoot returns the directory of go.mod, searched upward from the working
// directory.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, iofs.ErrNotExist) || parent == dir {
			return "", fmt.Errorf("find go.mod: %w", err)
		}
		dir = parent
	}
}
