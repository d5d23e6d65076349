package attack

import (
	"os"
	"path/filepath"
	"testing"
)

func init() { probes["symlink"] = probeSymlink }

// probeSymlink follows links that were planted on the host and makes some of
// its own.
func probeSymlink(args []string) {
	target := args[0]
	os.Symlink(target, "own")
	os.Symlink("../../../../../../.."+target, "relative")
	os.Symlink("/proc/self/root"+target, "proc")
	for _, link := range []string{"planted", "planted-dir/secret", "own", "relative", "proc"} {
		if data, err := os.ReadFile(link); err == nil {
			breach("%s leads to %q", link, data)
		}
		if err := os.WriteFile(link, []byte("overwritten"), 0o644); err == nil {
			if _, err := os.Lstat(target); err == nil {
				breach("%s can be written through", link)
			}
		}
	}
}

func TestSymlinksLeadNowhere(t *testing.T) {
	j := newJail(t)
	dir := filepath.Join(j.Dir, "outside")
	secret := filepath.Join(dir, "secret")
	for _, err := range []error{
		os.Mkdir(dir, 0o755),
		os.WriteFile(secret, []byte("secret"), 0o666),
		os.Symlink(secret, filepath.Join(j.Mount, "planted")),
		os.Symlink(dir, filepath.Join(j.Source, "planted-dir")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	j.probe("symlink", secret)
	if data, _ := os.ReadFile(secret); string(data) != "secret" {
		t.Errorf("the host's file: got %q", data)
	}
}
