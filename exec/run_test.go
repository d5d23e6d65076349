package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRunStatus(t *testing.T) {
	tests := []struct {
		name    string
		command []string
		code    int
		signal  syscall.Signal
		err     string // contained in the error; "" = none
	}{
		{"true", []string{"true"}, 0, 0, ""},
		{"own code", []string{"sh", "-c", "exit 7"}, 7, 0, ""},
		{"not found", []string{"no-such-command"}, 127, 0, "no-such-command: command not found"},
		{"no such path", []string{"/no/such/command"}, 127, 0, "no such file"},
		{"not executable", []string{"/etc/passwd"}, 126, 0, "permission denied"},
		{"directory", []string{"/usr"}, 126, 0, "is a directory"},
		{"killed", []string{"sh", "-c", "kill -TERM $$"}, 143, syscall.SIGTERM, ""},
		{"killed hard", []string{"sh", "-c", "kill -KILL $$"}, 137, syscall.SIGKILL, ""},
		{"kills the first process", []string{"sh", "-c", "kill -TERM 1; kill -KILL 1; kill -STOP 1; kill -SEGV 1; kill -URG 1; sleep 0.05; exit 3"}, 3, 0, ""},
		{"missing interpreter", []string{"sh", "-c", "printf '#!/no/interpreter\\n' >x; chmod +x x; ./x"}, 127, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := workspace(t)
			s.Command = tt.command
			r := runSpec(t, s)
			if r.ExitCode != tt.code || r.Signal != tt.signal {
				t.Errorf("got code %d signal %d, want %d and %d (stderr %s)", r.ExitCode, r.Signal, tt.code, tt.signal, r.errout)
			}
			if tt.err == "" && r.err != nil || tt.err != "" && (r.err == nil || !strings.Contains(r.err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", r.err, tt.err)
			}
		})
	}
}

func TestRunEnvironment(t *testing.T) {
	s := workspace(t)
	t.Setenv("WINKFS_TEST_SECRET", "leak")
	s.Env = []string{"A=1", "LANG=de_DE.UTF-8", "A=2"}
	s.Command = []string{"env"}
	r := runSpec(t, s)
	if strings.Contains(r.out, "SECRET") || strings.Contains(r.out, "GODEBUG") || strings.Contains(r.out, "GOMAXPROCS") {
		t.Errorf("the environment leaks:\n%s", r.out)
	}
	for _, want := range []string{"A=2\n", "LANG=de_DE.UTF-8\n", "WINKFS=1\n", "PYTHONDONTWRITEBYTECODE=1\n", "PWD=/workspace\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the environment lacks %q:\n%s", want, r.out)
		}
	}
}

func TestRunCwd(t *testing.T) {
	s := workspace(t)
	must(t, os.MkdirAll(filepath.Join(s.Mount, "a/b"), 0o755))
	must(t, os.Symlink("a", filepath.Join(s.Mount, "in")))
	must(t, os.Symlink("/etc", filepath.Join(s.Mount, "out")))
	must(t, os.Symlink("../../etc", filepath.Join(s.Mount, "up")))
	giveTo(t, s.Mount, s.Owner)
	s.At = []string{"/workspace", "/home/someone/src/project"}
	tests := []struct{ cwd, want, err string }{
		{"", "/workspace", ""},
		{"/workspace/a/b", "/workspace/a/b", ""},
		{"/home/someone/src/project/a", "/home/someone/src/project/a", ""},
		{"/workspace/in/b", "/workspace/a/b", ""},
		{"/workspace/out", "", "working directory"},
		{"/workspace/up", "", "working directory"},
		{"/workspace/missing", "", "working directory"},
	}
	for _, tt := range tests {
		t.Run(tt.cwd, func(t *testing.T) {
			s.Cwd, s.Command = tt.cwd, []string{"/bin/pwd"}
			r := runSpec(t, s)
			if tt.err != "" {
				if r.ExitCode != ExitSandbox || r.err == nil || !strings.Contains(r.err.Error(), tt.err) {
					t.Errorf("got %d, %v, want 125 and %q", r.ExitCode, r.err, tt.err)
				}
				return
			}
			if r.err != nil || r.out != tt.want+"\n" {
				t.Errorf("got %q, %v, want %q", r.out, r.err, tt.want)
			}
		})
	}
}

// TestRunOwner wants what is made inside to belong to the owner outside.
func TestRunOwner(t *testing.T) {
	for _, owner := range owners() {
		t.Run(fmt.Sprint(owner.UID), func(t *testing.T) {
			s := workspace(t)
			must(t, os.WriteFile(filepath.Join(s.Mount, "old"), []byte("x\n"), 0o600))
			s.Owner = owner
			giveTo(t, s.Mount, owner)
			s.Command = []string{"sh", "-ec", "cat old; echo y >>old; echo new >new; chmod 640 old; ln old link; mv new newer; stat -c %u newer; id -u"}
			r := runSpec(t, s)
			if r.err != nil || r.ExitCode != 0 {
				t.Fatalf("got %d, %v: %s", r.ExitCode, r.err, r.errout)
			}
			lines := strings.Fields(r.out)
			if n := len(lines); lines[n-1] != lines[n-2] {
				t.Errorf("the file's owner is %s inside, the command's user %s", lines[n-2], lines[n-1])
			}
			for _, name := range []string{"old", "newer", "link"} {
				var st unix.Stat_t
				must(t, unix.Stat(filepath.Join(s.Mount, name), &st))
				if st.Uid != owner.UID || st.Gid != owner.GID {
					t.Errorf("%s belongs to %d:%d, want %v", name, st.Uid, st.Gid, owner)
				}
			}
		})
	}
}

func owners() []Owner {
	if !probed().Root() {
		return []Owner{{uint32(os.Geteuid()), uint32(os.Getegid())}}
	}
	return []Owner{{0, 0}, {1001, 1002}}
}

func TestRunWrongMount(t *testing.T) {
	for _, change := range []func(*Spec){
		func(s *Spec) { s.MountDev++ },
		func(s *Spec) { s.MountType = unix.PROC_SUPER_MAGIC },
		func(s *Spec) { s.Mount += "-missing" },
	} {
		s := workspace(t)
		s.Command = []string{"true"}
		change(&s)
		r := runSpec(t, s)
		if r.ExitCode != ExitSandbox || r.err == nil || !strings.Contains(r.err.Error(), "workspace mount") {
			t.Errorf("got %+v, %v", r.Status, r.err)
		}
	}
}

func TestRunPaths(t *testing.T) {
	for _, at := range []string{"/tmp", "/tmp/x/y", "/home", "/home/winkfs", "/root/project", "/var/tmp/w", "/etc/thing", "/opt/x"} {
		t.Run(at, func(t *testing.T) {
			s := workspace(t)
			must(t, os.WriteFile(filepath.Join(s.Mount, "here"), nil, 0o644))
			s.At = []string{at}
			s.Command = []string{"sh", "-ec", "test -e here; /bin/pwd; echo x >\"$HOME/file\"; test ! -e file; ls"}
			r := runSpec(t, s)
			if r.err != nil || r.ExitCode != 0 || r.out != at+"\nhere\n" {
				t.Errorf("got %+v, %v, %q, %q", r.Status, r.err, r.out, r.errout)
			}
		})
	}
}

func TestRunHidden(t *testing.T) {
	s := workspace(t)
	s.Hidden = []string{"/usr/share", "/nowhere"}
	s.Command = []string{"ls", "-A", "/usr/share"}
	if r := runSpec(t, s); r.err != nil || r.ExitCode != 0 || r.out != "" {
		t.Errorf("got %+v, %v, %q", r.Status, r.err, r.out)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// giveTo makes a tree the owner's.
func giveTo(t *testing.T, dir string, o Owner) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(o.UID), int(o.GID))
	}))
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("waited in vain")
			return
		}
	}
}

func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}
