package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	harmless["files"] = lookForFiles
	probes["files"] = reachForFiles
}

// lookForFiles looks for the files named, by every spelling.
func lookForFiles(paths []string) {
	for _, p := range paths {
		for _, spelling := range spellings(p) {
			if _, err := os.Stat(spelling); err == nil {
				breach("%s is there", spelling)
			}
		}
	}
}

// reachForFiles tries to write into directories that belong to the system, and
// to read what nobody should.
func reachForFiles([]string) {
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/etc", "/lib", "/proc", "/sys", "/dev", "/run", "/var", "/root", "/home"} {
		name := filepath.Join(dir, "winkfs-attack")
		if f, err := os.Create(name); err == nil {
			f.Close()
			os.Remove(name)
			breach("can write into %s", dir)
		}
	}
	for _, p := range []string{"/etc/shadow", "/etc/ssh", "/etc/sudoers", "/boot", "/proc/kcore", "/proc/1/environ", "/dev/mem", "/dev/kmsg", "/dev/fuse"} {
		if f, err := os.Open(p); err == nil {
			if n, _ := f.Read(make([]byte, 1)); n > 0 {
				breach("can read %s", p)
			}
			f.Close()
		}
	}
}

// spellings returns ways to name an absolute path.
func spellings(p string) []string {
	return []string{
		p,
		"/proc/1/root" + p,
		"/proc/self/root" + p,
		"/proc/self/cwd/../../../../../.." + p,
		strings.Repeat("../", 30) + p[1:],
		"/workspace/.." + p,
		"/proc/self/fd/0/../.." + p,
	}
}

func TestHostFilesAreOutOfSight(t *testing.T) {
	j := newJail(t)
	secret := filepath.Join(j.Dir, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	host := []string{secret, j.Dir, j.Source + "/probe", j.State, j.Bin, j.Mount + "/probe"}
	if out := onHost(t, "files", secret); !strings.Contains(out, "BREACH") {
		t.Fatalf("the probe finds nothing on the host:\n%s", out)
	}
	j.probe("files", host...)
}
