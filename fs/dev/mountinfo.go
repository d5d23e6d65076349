package dev

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FSType is the type that mounts of winkfs have.
const FSType = "fuse.winkfs"

// MountEntry is one line of /proc/self/mountinfo.
type MountEntry struct {
	ID, Parent int
	Dev        uint64 // st_dev of the files in it
	Root       string // directory of the filesystem that is mounted
	Dir        string // mount point
	Options    string // of the mount
	Type       string
	Source     string
	Super      string // options of the superblock
}

// ReadOnly reports whether the mount refuses writes.
func (m *MountEntry) ReadOnly() bool {
	return m.Options == "ro" || strings.HasPrefix(m.Options, "ro,")
}

// Mounts returns the mounts of winkfs that the process sees, in the kernel's
// order: of two at one place the later one is on top.
func Mounts() ([]MountEntry, error) {
	all, err := allMounts()
	if err != nil {
		return nil, err
	}
	var ours []MountEntry
	for _, m := range all {
		if m.Type == FSType {
			ours = append(ours, m)
		}
	}
	return ours, nil
}

func allMounts() ([]MountEntry, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	return parseMountinfo(f)
}

// top returns the mount that is on top at the directory, nil if none is.
func top(dir string) (*MountEntry, error) {
	all, err := allMounts()
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Dir == dir {
			return &all[i], nil
		}
	}
	return nil, nil
}

// parseMountinfo reads the format of proc_pid_mountinfo(5).
func parseMountinfo(r io.Reader) ([]MountEntry, error) {
	var out []MountEntry
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		m, err := parseMountLine(s.Text())
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read mountinfo: %w", err)
	}
	return out, nil
}

// parseMountLine splits one line. Fields are separated by single spaces;
// spaces within them are escaped; " - " ends the optional ones.
func parseMountLine(line string) (MountEntry, error) {
	bad := func() (MountEntry, error) {
		return MountEntry{}, fmt.Errorf("read mountinfo: malformed line %q", line)
	}
	left, right, ok := strings.Cut(line, " - ")
	l, r := strings.Split(left, " "), strings.Split(right, " ")
	if !ok || len(l) < 6 || len(r) < 3 {
		return bad()
	}
	id, err1 := strconv.Atoi(l[0])
	parent, err2 := strconv.Atoi(l[1])
	dev, err3 := parseDev(l[2])
	if err1 != nil || err2 != nil || err3 != nil {
		return bad()
	}
	return MountEntry{
		ID: id, Parent: parent, Dev: dev,
		Root: unescape(l[3]), Dir: unescape(l[4]), Options: l[5],
		Type: unescape(r[0]), Source: unescape(r[1]), Super: r[2],
	}, nil
}

func parseDev(s string) (uint64, error) {
	a, b, _ := strings.Cut(s, ":")
	major, err := strconv.ParseUint(a, 10, 32)
	if err != nil {
		return 0, err
	}
	minor, err := strconv.ParseUint(b, 10, 32)
	if err != nil {
		return 0, err
	}
	return unix.Mkdev(uint32(major), uint32(minor)), nil
}

// unescape undoes the kernel's mangle_path: \ooo stands for one byte.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c, ok := octal(s[i:]); ok {
			b.WriteByte(c)
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(s string) (byte, bool) {
	if len(s) < 4 || s[0] != '\\' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:4], 8, 8)
	return byte(n), err == nil
}
