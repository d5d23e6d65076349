package dev

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tell has the daemon do something behind the kernel's back.
func (d *daemon) tell(cmd string) {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.dir, "control"), os.O_WRONLY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(cmd); err != nil {
		d.t.Fatal(err)
	}
}

// TestStuckOperations hangs writes, reads and fsyncs in the daemon and expects
// everything else to go on.
func TestStuckOperations(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	d := start(t, dir, MethodAuto, "", nil)
	const stuck = 5
	ended := make(chan error, stuck)
	for i := range stuck {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("stuck%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer f.Close()
			if i%2 == 0 {
				ended <- f.Sync()
				return
			}
			_, err := f.WriteString("x")
			ended <- err
		}()
	}
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	for i := range 200 {
		name := filepath.Join(dir, fmt.Sprintf("free%d", i))
		if err := os.WriteFile(name, []byte("y"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("200 files beside stuck operations took %v", took)
	}
	if len(ended) > 0 {
		t.Errorf("an operation did not hang: %v", <-ended)
	}
	d.tell("release")
	for range stuck {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	exercise(t, dir)
}

// TestInterrupt signals clients that wait for a stuck operation. The kernel
// asks for an interrupt once; the loop goes on, the clients wait, and they get
// their signal with the answer.
func TestInterrupt(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	d := start(t, dir, MethodAuto, "", nil)
	var clients []*osexec.Cmd
	for i := range 3 {
		name := filepath.Join(dir, fmt.Sprintf("stuck%d", i))
		if err := unix.Mknod(name, unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
		c := osexec.Command("sh", "-c", `echo x >"$0"`, name)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	time.Sleep(50 * time.Millisecond)
	for _, c := range clients {
		_ = c.Process.Signal(unix.SIGTERM)
	}
	time.Sleep(10 * time.Millisecond)
	exercise(t, dir)
	d.tell("release")
	for _, c := range clients {
		if err := c.Wait(); err == nil {
			t.Error("the signal was lost")
		}
	}
}

func TestPanicIsEIO(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	start(t, dir, MethodAuto, "", nil)
	if _, err := os.Stat(filepath.Join(dir, "panic")); !errors.Is(err, unix.EIO) {
		t.Errorf("stat: %v", err)
	}
	exercise(t, dir)
}

// TestReservedName uses the name that the library keeps for itself.
func TestReservedName(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	start(t, dir, MethodAuto, "", nil)
	name := filepath.Join(dir, strings.TrimSuffix(string(hackName), "\x00"))
	if _, err := os.Stat(name); !errors.Is(err, unix.ENOENT) {
		t.Fatalf("stat: %v", err)
	}
	if err := os.WriteFile(name, []byte("z"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "z" {
		t.Errorf("read: %q, %v", got, err)
	}
	if err := os.Remove(name); err != nil {
		t.Error(err)
	}
}

func TestNotifications(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	d := start(t, dir, MethodAuto, "", nil)
	read := func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "f"))
		return string(b)
	}
	read() // a negative entry
	d.tell("set f old-text")
	if got := read(); got != "" {
		t.Fatalf("the negative entry was not cached: %q", got)
	}
	d.tell("set-notify f old-text")
	eventually(t, "new entry", func() bool { return read() == "old-text" })
	d.tell("set f new-text")
	if got := read(); got != "old-text" {
		t.Fatalf("bytes were not cached: %q", got)
	}
	d.tell("set-notify f new-text")
	eventually(t, "new bytes", func() bool { return read() == "new-text" })
	eventually(t, "stored bytes", func() bool {
		d.tell("store f NEW-TEXT") // not taken if the kernel just dropped the inode
		return read() == "NEW-TEXT"
	})
	d.tell("epoch")
	d.tell("expire f")
	exercise(t, dir)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s: not seen", what)
}
