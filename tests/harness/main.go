package harness

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var exits struct {
	mu  sync.Mutex
	fns []func() // protected by mu
}

// atExit calls fn when Main ends.
func atExit(fn func()) {
	exits.mu.Lock()
	defer exits.mu.Unlock()
	exits.fns = append(exits.fns, fn)
}

// Main runs a package's tests, for root also as the ordinary user, and returns
// the exit status. It is meant for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		for _, fn := range exits.fns {
			fn()
		}
	}()
	code := m.Run()
	name := os.Getenv("WINKFS_TEST_USER")
	if code != 0 || name == "" || os.Geteuid() != 0 {
		return code
	}
	if err := rerun(name); err != nil {
		fmt.Fprintf(os.Stderr, "as %s: %v\n", name, err)
		var exit *osexec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		return 1
	}
	return 0
}

// rerun runs this test binary again as the user. The test binary, the winkfs
// binary and the package's files are copied to where that user can read them.
func rerun(name string) error {
	cred, err := credential(name)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "winkfs-as-user-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env, err := stage(dir, cred)
	if err != nil {
		return fmt.Errorf("stage test files: %w", err)
	}
	fmt.Printf("again as %s\n", name)
	// The log that go test keeps of opened files is root's.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile=") })
	cmd := osexec.Command(filepath.Join(dir, "test"), args...)
	cmd.Dir = filepath.Join(dir, "repo", "package")
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	return cmd.Run()
}

func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// stage fills dir with what the second pass needs and returns its environment.
func stage(dir string, cred *syscall.Credential) ([]string, error) {
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := copyFile(self, filepath.Join(dir, "test"), 0o755); err != nil {
		return nil, err
	}
	if err := stagePackage(filepath.Join(dir, "repo")); err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chown(home, int(cred.Uid), int(cred.Gid)); err != nil {
		return nil, err
	}
	env := append(os.Environ(), "HOME="+home, "TMPDIR="+home, "WINKFS_TEST_USER=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=")
	bin, err := Binary()
	if err != nil {
		return env, nil // the tests of the second pass skip or fail by themselves
	}
	staged := filepath.Join(dir, "winkfs")
	return append(env, "WINKFS_BIN="+staged), copyFile(bin, staged, 0o755)
}

// stagePackage copies the working directory, which go test makes the package's,
// and what tests read of the repository's top.
func stagePackage(repo string) error {
	if err := os.CopyFS(filepath.Join(repo, "package"), os.DirFS(".")); err != nil {
		return err
	}
	root, err := RepoRoot()
	if err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "README.md"} {
		if err := copyFile(filepath.Join(root, name), filepath.Join(repo, name), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}
