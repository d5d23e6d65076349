package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAttackAtEveryStep lets the host do something nasty before each step of an
// apply in turn. Whatever it is: nothing outside is written, nothing that the
// host made is lost, and the apply is done or not done.
func TestAttackAtEveryStep(t *testing.T) {
	edit := func(path string) string {
		if os.WriteFile(path, []byte("host edit"), 0o644) != nil {
			return ""
		}
		return `"host edit"`
	}
	// Each returns what it made, as the tree shows it. That has to be in the source
	// afterwards: a pre-image would mean that the host's work was taken away.
	attacks := map[string]func(b *bench, outside string) string{
		"file becomes link": func(b *bench, outside string) string {
			_ = os.Rename(b.path("d/f"), b.path("d/kept"))
			_ = os.Symlink(filepath.Join(outside, "victim"), b.path("d/f"))
			return "d/f L"
		},
		"link planted for new file": func(b *bench, outside string) string {
			if os.Symlink(filepath.Join(outside, "victim"), b.path("d/new")) != nil {
				return "" // the apply was faster
			}
			return "d/new L"
		},
		"directory becomes link": func(b *bench, outside string) string {
			_ = os.Rename(b.path("d"), b.path("away"))
			_ = os.Symlink(outside, b.path("d"))
			return "d L"
		},
		"file becomes FIFO": func(b *bench, _ string) string {
			_ = os.Rename(b.path("d/f"), b.path("d/kept"))
			_ = unix.Mkfifo(b.path("d/f"), 0o644)
			return "d/f p"
		},
		"file is edited": func(b *bench, _ string) string { return edit(b.path("d/f")) },
		"file is replaced": func(b *bench, _ string) string {
			mark := edit(b.path("d/tmp"))
			_ = os.Rename(b.path("d/tmp"), b.path("d/f"))
			return mark
		},
		"deleted file is edited":    func(b *bench, _ string) string { return edit(b.path("d/gone")) },
		"file in deleted directory": func(b *bench, _ string) string { return edit(b.path("empty/x")) },
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			for k := 0; ; k++ {
				if !attackOnce(t, k, attack) {
					t.Logf("%d steps", k)
					return
				}
			}
		})
	}
}

// attackOnce runs the attack before step k; false when there was no such step.
func attackOnce(t *testing.T, k int, attack func(*bench, string) string) bool {
	t.Helper()
	b := newBench(t)
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "victim"), []byte("safe"), 0o644))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("safe"), 0o644))
	must(t, os.WriteFile(filepath.Join(outside, "gone"), []byte("safe"), 0o644))
	want := treeOf(t, outside)
	b.write("d/f=1", "d/gone=2", "empty")
	items := []Item{b.item("d/f", file("new contents")), b.item("d/new", file("created")), b.item("d/gone", Want{}), b.item("empty", Want{}),
		b.item("sub", dir()), b.item("sub/x", file("y"))}
	n, hit, mark := 0, false, ""
	o := b.options()
	o.Step = func(string) error {
		if n == k {
			hit = true
			mark = attack(b, outside)
		}
		n++
		return nil
	}
	_, err := Run(context.Background(), items, o)
	if got := treeOf(t, outside); got != want {
		t.Fatalf("step %d: outside became\n%s", k, got)
	}
	if hit {
		attackEnd(t, b, k, mark, err)
	}
	return hit
}

// attackEnd checks that the host's work survived.
func attackEnd(t *testing.T, b *bench, k int, mark string, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrStuck) {
		t.Errorf("step %d: unexpected error %v", k, err)
	}
	rest := strings.ReplaceAll(b.tree(), "away/.winkfs-apply", "")
	if err != nil && !errors.Is(err, ErrStuck) && strings.Contains(rest, ".winkfs-apply") {
		t.Errorf("step %d: temporary names are left after %v:\n%s", k, err, b.tree())
	}
	if !strings.Contains(b.tree(), mark) {
		t.Errorf("step %d: %s is lost after %v:\n%s", k, mark, err, b.tree())
	}
	if all := b.tree() + treeOf(t, b.state); !strings.Contains(all, `"1"`) && mark != `"host edit"` {
		t.Errorf("step %d: the file from before is gone altogether:\n%s", k, all)
	}
}

// TestSwapRace swaps a directory for a link to the outside while applies run. It
// goes on until enough applies were past their preflight, both kinds: those that
// came through and those that the swap hit.
func TestSwapRace(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	must(t, os.Mkdir(outside, 0o755))
	b.write("d/f=0", "away->"+outside)
	defer swapForever(b)()
	const enough = 15
	through, hit := 0, 0
	for i := 0; through < enough || hit < enough; i++ {
		if i == 20000 {
			t.Fatalf("only %d applies came through and %d were hit", through, hit)
		}
		reached := false
		o := b.options()
		o.Step = func(string) error { reached = true; return nil }
		_, err := Run(context.Background(), []Item{{Source: 1, Path: fmt.Sprintf("d/new%d", i), Want: file("x")}}, o)
		switch {
		case err == nil:
			through++
		case reached:
			hit++
		}
		if errors.Is(err, ErrStuck) || errors.Is(err, ErrUnfinished) {
			recoverSoon(t, b)
		}
	}
	if got := treeOf(t, outside); got != "" {
		t.Fatalf("the race wrote outside:\n%s", got)
	}
}

// swapForever exchanges d and away at random times until the returned function
// is called.
func swapForever(b *bench) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		r := rand.New(rand.NewSource(1))
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Duration(r.Intn(3000)) * time.Microsecond):
				_ = unix.Renameat2(unix.AT_FDCWD, b.path("d"), unix.AT_FDCWD, b.path("away"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// recoverSoon recovers as soon as the directory is in its place for long enough.
func recoverSoon(t *testing.T, b *bench) {
	t.Helper()
	var err error
	for range 1000 {
		if _, err = Recover(context.Background(), b.options()); err == nil {
			return
		}
	}
	t.Fatalf("recover: %v", err)
}

func TestSymlinkedRootIsTheCallers(t *testing.T) {
	b := newBench(t)
	b.write("real/x=1", "link->real")
	if _, err := b.run(Item{Source: 1, Path: "link/y", Want: file("2")}); !errors.Is(err, ErrConflict) {
		t.Errorf("writing through a link inside the source gives %v", err)
	}
	res, err := b.run(Item{Source: 1, Path: "link/x", Base: b.base("real/x")})
	if !errors.Is(err, ErrConflict) {
		t.Errorf("deleting through a link gives %+v, %v", res, err)
	}
	b.check("real/x=1", "link->real")
}

// TestErrorAtEveryStep makes each step fail in turn: the tree is as before.
func TestErrorAtEveryStep(t *testing.T) {
	for name, v := range variants {
		t.Run(name, func(t *testing.T) { errorAtEveryStep(t, v) })
	}
}

func errorAtEveryStep(t *testing.T, v variant) {
	boom := errors.New("boom")
	for k := 0; ; k++ {
		b := newBenchOf(t, v)
		items := workload(b)
		before := b.tree()
		n, hit := 0, false
		o := b.options()
		o.Step = func(string) error {
			n++
			if n == k+1 {
				hit = true
				return boom
			}
			return nil
		}
		_, err := Run(context.Background(), items, o)
		if !hit {
			must(t, err)
			t.Logf("%d steps", k)
			checkDone(b)
			return
		}
		if errors.Is(err, ErrStuck) { // behind the point of no return
			o.Step = nil
			if _, err := Recover(context.Background(), o); err != nil {
				t.Fatalf("step %d: recover: %v", k, err)
			}
			checkDone(b)
			continue
		}
		if !errors.Is(err, boom) || b.tree() != before {
			t.Fatalf("step %d: %v, tree\n%s\nwant\n%s", k, err, b.tree(), before)
		}
	}
}

// workload makes a tree and items of every kind.
func workload(b *bench) []Item {
	b.t.Helper()
	b.write("m=1", "d/gone=2", "d/e/gone=3", "mv/x=4", "mv/y=5", "f2d=6", "d2f/x=7", "l->m", "meta=8", "ro=9")
	return workloadItems(b)
}

func workloadItems(b *bench) []Item {
	return []Item{
		b.item("m", file("changed")), b.item("d", Want{}), b.item("d/gone", Want{}), b.item("d/e", Want{}), b.item("d/e/gone", Want{}),
		b.item("n", dir()), b.move("mv", "n/moved"), {Source: 1, Path: "n/moved/x", Base: b.base("mv/x"), Want: file("edited")},
		{Source: 1, Path: "n/moved/y", Base: b.base("mv/y")},
		b.item("f2d", dir()), {Source: 1, Path: "f2d/x", Want: file("in")}, b.item("d2f", file("out")), b.item("d2f/x", Want{}),
		b.item("l", symlink("n")), b.item("meta", Want{Mode: unix.S_IFREG | 0o600, Size: 1}), b.item("new", file("new")),
	}
}

func checkDone(b *bench) {
	b.t.Helper()
	_ = os.Chmod(b.path("meta"), 0o644)
	b.check("m=changed", "n/moved/x=edited", "f2d/x=in", "d2f=out", "l->n", "meta=8", "new=new", "ro=9")
}

func TestUnwritableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere; TestErrorAtEveryStep covers the revert")
	}
	b := newBench(t)
	b.write("a=1", "ro/f=2")
	must(t, os.Chmod(b.path("ro"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(b.path("ro"), 0o755) })
	before := b.tree()
	if _, err := b.run(b.item("a", file("x")), b.item("ro/f", file("y"))); !errors.Is(err, unix.EACCES) || b.tree() != before {
		t.Errorf("error is %v, tree\n%s", err, b.tree())
	}
}
