package dev

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMountinfo(t *testing.T) {
	tests := []struct {
		name, line string
		want       MountEntry
	}{
		{
			"plain",
			"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue",
			MountEntry{36, 35, unix.Mkdev(98, 0), "/mnt1", "/mnt2", "rw,noatime", "ext3", "/dev/root", "rw,errors=continue"},
		}, {
			"no optional fields",
			"1 0 0:57 / /m ro - fuse.winkfs winkfs:a rw,user_id=0",
			MountEntry{1, 0, unix.Mkdev(0, 57), "/", "/m", "ro", "fuse.winkfs", "winkfs:a", "rw,user_id=0"},
		}, {
			"escapes",
			`1 0 0:57 / /a\040b\011c\012d\134040 rw shared:1 master:2 - fuse.winkfs x\043y rw`,
			MountEntry{1, 0, unix.Mkdev(0, 57), "/", "/a b\tc\nd\\040", "rw", "fuse.winkfs", "x#y", "rw"},
		}, {
			"a separator in a name is escaped",
			`1 0 0:57 / /a\040-\040fuse.winkfs\040x rw - tmpfs none rw`,
			MountEntry{1, 0, unix.Mkdev(0, 57), "/", "/a - fuse.winkfs x", "rw", "tmpfs", "none", "rw"},
		}, {
			"no escape",
			`1 0 0:57 / /a\9\08\777z rw - tmpfs none rw`,
			MountEntry{1, 0, unix.Mkdev(0, 57), "/", `/a\9\08\777z`, "rw", "tmpfs", "none", "rw"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseMountinfo(strings.NewReader(tt.line + "\n"))
			if err != nil || len(got) != 1 || got[0] != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseMountinfoMalformed(t *testing.T) {
	for _, line := range []string{
		"", "1 0 0:1 / /m rw tmpfs none rw", "1 0 0:1 / /m - tmpfs none rw", "x 0 0:1 / /m rw - t n r",
		"1 x 0:1 / /m rw - t n r", "1 0 0x1 / /m rw - t n r", "1 0 a:1 / /m rw - t n r", "1 0 0:1 / /m rw - t n",
	} {
		if got, err := parseMountLine(line); err == nil {
			t.Errorf("%q: got %+v", line, got)
		}
	}
}

func FuzzParseMountLine(f *testing.F) {
	f.Add(`1 0 0:57 / /a\040b\134 rw shared:1 - fuse.winkfs winkfs:x rw`)
	f.Add(" - ")
	f.Add(`1 0 0:57 / \ rw - \0 \04 \777`)
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parseMountLine(line)
		if err == nil && len(m.Dir) > len(line) {
			t.Errorf("%q: mount point %q", line, m.Dir)
		}
	})
}

func TestMounts(t *testing.T) {
	all, err := allMounts()
	if err != nil || len(all) == 0 {
		t.Fatalf("allMounts: %d, %v", len(all), err)
	}
	root, err := top("/")
	if err != nil || root == nil {
		t.Fatalf("top: %v, %v", root, err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/", &st); err == nil && root.Type != "btrfs" && st.Dev != root.Dev {
		t.Errorf("st_dev %#x, mountinfo %#x", st.Dev, root.Dev)
	}
}

func TestParseAllowOther(t *testing.T) {
	tests := []struct {
		conf string
		want bool
	}{
		{"", false}, {"#user_allow_other\n", false}, {"mount_max = 3\nuser_allow_other\n", true},
		{"  user_allow_other  ", true}, {"user_allow_other x\n", false},
	}
	for _, tt := range tests {
		if got := parseAllowOther(strings.NewReader(tt.conf)); got != tt.want {
			t.Errorf("%q: got %v", tt.conf, got)
		}
	}
}

func TestFusermountData(t *testing.T) {
	got := fusermountData(options{source: `winkfs:a,b\c`, readOnly: true, allowOther: true})
	want := `nosuid,nodev,default_permissions,subtype=winkfs,fsname=winkfs:a\,b\\c,max_read=1048576,ro,allow_other`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
