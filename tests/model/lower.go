package model

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// MakeLower fills dir with a tree that has something of everything: odd names,
// hard links, links, attributes, holes, a large file, old times.
func MakeLower(t testing.TB, dir string) {
	t.Helper()
	m := maker{t: t, dir: dir}
	for d := range 4 {
		for f := range 6 {
			m.file(fmt.Sprintf("d%d/sub%d/f%d", d, f%2, f), Op{Len: int64(1 + d*f*700), Seed: uint64(d*10 + f)}.Data())
		}
	}
	m.file("a", []byte("top\n"))
	m.file("b", nil)
	m.file("with space/new\nline/deep", []byte("odd"))
	m.file("large", Op{Len: 3<<20 + 123, Seed: 7}.Data())
	m.file("script", []byte("#!/bin/sh\necho hello\n"))
	m.do(os.Chmod(m.at("script"), 0o755))
	m.do(os.Mkdir(m.at("empty"), 0o700))
	m.do(os.Link(m.at("a"), m.at("d0/hard")))
	m.do(os.Link(m.at("a"), m.at("d1/sub0/hard")))
	m.do(os.Symlink("a", m.at("link")))
	m.do(os.Symlink("nowhere", m.at("d2/dangling")))
	m.do(os.Symlink("d1", m.at("dirlink")))
	m.do(unix.Mkfifo(m.at("fifo"), 0o644))
	m.do(unix.Lsetxattr(m.at("a"), "user.a", []byte("value"), 0))
	m.do(unix.Lsetxattr(m.at("d3"), "user.b", []byte{0, 1, 255}, 0))
	m.sparse("sparse")
	m.do(os.Chtimes(m.at("b"), time.Time{}, time.Unix(1e9, 123456789)))
	m.do(os.Chtimes(m.at("d3"), time.Time{}, time.Unix(1e9, 987654321)))
}

type maker struct {
	t   testing.TB
	dir string
}

func (m maker) do(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("make lower tree: %v", err)
	}
}

func (m maker) at(name string) string { return filepath.Join(m.dir, name) }

func (m maker) file(name string, data []byte) {
	m.t.Helper()
	m.do(os.MkdirAll(filepath.Dir(m.at(name)), 0o755))
	m.do(os.WriteFile(m.at(name), data, 0o644))
}

// sparse makes a file with data at both ends of a hole.
func (m maker) sparse(name string) {
	m.t.Helper()
	f, err := os.Create(m.at(name))
	m.do(err)
	_, err = f.WriteAt([]byte(strings.Repeat("end", 100)), 2<<20)
	m.do(err)
	_, err = f.WriteAt([]byte("begin"), 0)
	m.do(err)
	m.do(f.Close())
}
