package fs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// newAdapter returns an adapter on the tree, and its log.
func newAdapter(f *fakeTree) (*adapter, *bytes.Buffer) {
	var log bytes.Buffer
	return &adapter{tree: f, log: slog.New(slog.NewJSONHandler(&log, nil))}, &log
}

func head(node uint64) fuse.InHeader {
	return fuse.InHeader{NodeId: node, Unique: 6 | resent, Caller: fuse.Caller{Owner: fuse.Owner{Uid: 1, Gid: 2}, Pid: 3}}
}

func TestTimes(t *testing.T) {
	tests := []struct {
		t    journal.Timespec
		sec  int64
		nsec uint32
	}{
		{0, 0, 0}, {1, 0, 1}, {-1, -1, 999999999}, {-1e9, -1, 0}, {1_600_000_000_123_456_789, 1_600_000_000, 123_456_789},
		{-1_500_000_000, -2, 500_000_000},
	}
	for _, tt := range tests {
		sec, nsec := split(tt.t)
		if int64(sec) != tt.sec || nsec != tt.nsec {
			t.Errorf("split %d: %d, %d", tt.t, int64(sec), nsec)
		}
		if got := join(sec, nsec); got != tt.t {
			t.Errorf("join %d, %d: %d", int64(sec), nsec, got)
		}
	}
	for _, s := range []int64{1 << 40, 1<<63 - 1, -1 << 40, -1 << 63} {
		if got := join(uint64(s), 0); got > 0 != (s > 0) {
			t.Errorf("join %d: %d", s, got)
		}
	}
}

var someStat = tree.Stat{
	ID: 1<<63 | 5, Gen: 4, Blocks: 8, Blksize: 4096,
	Attr: journal.Attr{Mode: unix.S_IFREG | 0o640, UID: 10, GID: 11, Nlink: 2, Rdev: 0x801, Size: 77,
		Atime: -1, Mtime: 2e9 + 1, Ctime: 3e9 + 2, Btime: 4e9 + 3},
}

func TestLookup(t *testing.T) {
	f := &fakeTree{stat: someStat}
	a, _ := newAdapter(f)
	h := head(0) // the root, as the loop passes it on for a reserved name
	var out fuse.EntryOut
	if st := a.Lookup(nil, &h, "n", &out); st != fuse.OK {
		t.Fatal(st)
	}
	if f.id != journal.RootID || f.name != "n" || f.req != (tree.Request{TID: 3, UID: 1, GID: 2, Unique: 6}) {
		t.Errorf("asked %d %q %+v", f.id, f.name, f.req)
	}
	if out.NodeId != uint64(someStat.ID) || out.Generation != 4 || out.EntryTimeout() != 2*time.Hour+5 || out.AttrTimeout() != 2*time.Hour+5 {
		t.Errorf("entry %+v", out)
	}
	want := fuse.Attr{Ino: uint64(someStat.ID), Size: 77, Blocks: 8, Atime: ^uint64(0), Atimensec: 999999999, Mtime: 2, Mtimensec: 1,
		Ctime: 3, Ctimensec: 2, Mode: unix.S_IFREG | 0o640, Nlink: 2, Owner: fuse.Owner{Uid: 10, Gid: 11}, Rdev: 0x801, Blksize: 4096}
	if out.Attr != want {
		t.Errorf("attr %+v, want %+v", out.Attr, want)
	}
}

func TestNegativeLookup(t *testing.T) {
	a, log := newAdapter(&fakeTree{err: fmt.Errorf("x: %w", tree.ErrNotExist)})
	h := head(1)
	var out fuse.EntryOut
	if st := a.Lookup(nil, &h, "n", &out); st != fuse.OK || out.NodeId != 0 || out.EntryTimeout() != 2*time.Hour+5 {
		t.Errorf("%v, %+v", st, out)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

func TestCreateOfExisting(t *testing.T) {
	for flags, want := range map[uint32]unix.Errno{unix.O_CREAT: unix.ESTALE, unix.O_CREAT | unix.O_EXCL: unix.EEXIST} {
		a, _ := newAdapter(&fakeTree{err: tree.ErrExist})
		var out fuse.CreateOut
		if st := a.Create(nil, &fuse.CreateIn{InHeader: head(1), Flags: flags}, "n", &out); st != fuse.Status(want) {
			t.Errorf("flags %#x: %v", flags, st)
		}
	}
}

func TestSetattr(t *testing.T) {
	in := fuse.SetAttrInCommon{
		Mode: unix.S_IFREG | 0o4755, Size: 9, Owner: fuse.Owner{Uid: 5, Gid: 6},
		Atime: 1, Atimensec: 2, Mtime: ^uint64(0), Mtimensec: 999999999, Ctime: 3,
	}
	tests := []struct {
		name  string
		valid uint32
		want  tree.SetMask
	}{
		{"mode", fuse.FATTR_MODE, tree.SetMode},
		{"owner", fuse.FATTR_UID | fuse.FATTR_GID, tree.SetUID | tree.SetGID},
		{"truncate", fuse.FATTR_SIZE | fuse.FATTR_LOCKOWNER | fuse.FATTR_FH, tree.SetSize},
		{"times", fuse.FATTR_ATIME | fuse.FATTR_MTIME | fuse.FATTR_CTIME, tree.SetAtime | tree.SetMtime | tree.SetCtime},
		{"now", fuse.FATTR_ATIME | fuse.FATTR_MTIME | fuse.FATTR_ATIME_NOW | fuse.FATTR_MTIME_NOW, tree.SetAtimeNow | tree.SetMtimeNow},
		{"nothing", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in.Valid = tt.valid
			want := tree.SetAttr{Mask: tt.want, Mode: 0o4755, UID: 5, GID: 6, Size: 9, Atime: 1e9 + 2, Mtime: -1, Ctime: 3e9}
			if got := decodeSetattr(&in); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	f := &fakeTree{}
	a, _ := newAdapter(f)
	in.Valid = fuse.FATTR_SIZE | fuse.FATTR_KILL_SUIDGID
	if st := a.SetAttr(nil, &fuse.SetAttrIn{SetAttrInCommon: in}, &fuse.AttrOut{}); st != fuse.OK || !f.req.KillPriv {
		t.Errorf("%v, %+v", st, f.req)
	}
}

func TestStatx(t *testing.T) {
	a, _ := newAdapter(&fakeTree{stat: someStat})
	var out fuse.StatxOut
	if st := a.Statx(nil, &fuse.StatxIn{InHeader: head(5)}, &out); st != fuse.OK {
		t.Fatal(st)
	}
	if out.Mask&unix.STATX_BTIME == 0 || out.Btime.Sec != 4 || out.Btime.Nsec != 3 || out.RdevMajor != 8 || out.RdevMinor != 1 || out.Ino != uint64(someStat.ID) {
		t.Errorf("%+v", out.Statx)
	}
}

func TestWrite(t *testing.T) {
	f := &fakeTree{written: 3, err: tree.ErrQuota}
	a, log := newAdapter(f)
	in := &fuse.WriteIn{InHeader: head(5), WriteFlags: fuse.WRITE_CACHE | fuse.WRITE_KILL_SUIDGID}
	if n, st := a.Writev(nil, in, [][]byte{[]byte("12345")}); n != 3 || st != fuse.OK {
		t.Errorf("short write: %d, %v", n, st)
	}
	if !f.req.WriteBack || !f.req.KillPriv {
		t.Errorf("flags %+v", f.req)
	}
	f.written = 0
	if n, st := a.Write(nil, in, []byte("12345")); n != 0 || st != fuse.Status(unix.EDQUOT) {
		t.Errorf("refused write: %d, %v", n, st)
	}
	if strings.Count(log.String(), "refused") != 1 {
		t.Errorf("log %s", log)
	}
}

func TestReadInPlace(t *testing.T) {
	a, _ := newAdapter(&fakeTree{value: []byte("abc")})
	buf := make([]byte, 8)
	res, st := a.Read(nil, &fuse.ReadIn{InHeader: head(5), Offset: 1}, buf)
	if st != fuse.OK || res.Size() != 2 || string(buf[:2]) != "bc" {
		t.Errorf("%v, %v, %q", st, res, buf)
	}
}

func TestGetXAttr(t *testing.T) {
	tests := []struct {
		name string
		tree fakeTree
		attr string
		room int
		n    uint32
		st   fuse.Status
	}{
		{"probe", fakeTree{value: []byte("12345")}, "user.a", 0, 5, fuse.OK},
		{"fits", fakeTree{value: []byte("12345")}, "user.a", 5, 5, fuse.OK},
		{"too small", fakeTree{value: []byte("12345")}, "user.a", 4, 5, fuse.ERANGE},
		{"empty", fakeTree{}, "user.a", 4, 0, fuse.OK},
		{"missing", fakeTree{err: tree.ErrNoAttr}, "user.a", 4, 0, fuse.ENODATA},
		{"capability", fakeTree{value: []byte("12345")}, capability, 5, 0, fuse.ENODATA},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _ := newAdapter(&tt.tree)
			h := head(5)
			if n, st := a.GetXAttr(nil, &h, tt.attr, make([]byte, tt.room)); n != tt.n || st != tt.st {
				t.Errorf("got %d, %v", n, st)
			}
		})
	}
}

func TestListXAttr(t *testing.T) {
	a, _ := newAdapter(&fakeTree{names: []string{"user.a", capability, "user.bc"}})
	h := head(5)
	if n, st := a.ListXAttr(nil, &h, nil); n != 15 || st != fuse.OK {
		t.Errorf("probe: %d, %v", n, st)
	}
	if n, st := a.ListXAttr(nil, &h, make([]byte, 14)); n != 15 || st != fuse.ERANGE {
		t.Errorf("too small: %d, %v", n, st)
	}
	buf := make([]byte, 20)
	if n, st := a.ListXAttr(nil, &h, buf); n != 15 || st != fuse.OK || string(buf[:n]) != "user.a\x00user.bc\x00" {
		t.Errorf("%d, %v, %q", n, st, buf)
	}
}

func TestSetXAttrLength(t *testing.T) {
	f := &fakeTree{}
	a, _ := newAdapter(f)
	in := &fuse.SetXAttrIn{InHeader: head(5), Size: 2}
	if st := a.SetXAttr(nil, in, "user.a", []byte("abc")); st != fuse.OK || string(f.value) != "ab" {
		t.Errorf("%v, %q", st, f.value)
	}
	if st := a.SetXAttr(nil, in, "user.a", []byte("a")); st != fuse.EINVAL {
		t.Errorf("short value: %v", st)
	}
}

func TestReaddir(t *testing.T) {
	entries := []tree.Dirent{
		{Name: ".", ID: 1, Mode: unix.S_IFDIR, Cookie: 1}, {Name: "..", ID: 1, Mode: unix.S_IFDIR, Cookie: 2},
		{Name: "a", ID: 5, Mode: unix.S_IFREG, Cookie: 1 << 40, Stat: &someStat},
		{Name: "b", ID: 6, Mode: unix.S_IFREG, Cookie: 1<<61 + 7, Stat: &someStat},
	}
	f := &fakeTree{entries: entries, after: tree.ErrStale}
	a, _ := newAdapter(f)
	in := &fuse.ReadIn{InHeader: head(1)}
	list := fuse.NewDirEntryList(make([]byte, 4096), 0)
	if st := a.ReadDirPlus(nil, in, list); st != fuse.OK || list.Offset != 1<<61+7 {
		t.Errorf("plus: %v, offset %d", st, list.Offset)
	}
	small := fuse.NewDirEntryList(make([]byte, 3*32), 0)
	if st := a.ReadDir(nil, in, small); st != fuse.OK || small.Offset != 1<<40 {
		t.Errorf("full buffer: %v, offset %d", st, small.Offset)
	}
	in.Offset = 1<<61 + 7
	if st := a.ReadDir(nil, in, fuse.NewDirEntryList(make([]byte, 4096), in.Offset)); st != fuse.Status(unix.ESTALE) {
		t.Errorf("error after the end: %v", st)
	}
}

func TestReportIsQuotedAndBounded(t *testing.T) {
	a, log := newAdapter(&fakeTree{err: errors.New("broken \n\x1b[31m")})
	h := head(1)
	for range 3 * reportsPerSecond {
		a.Lookup(nil, &h, "evil\n\x1b]0;name"+strings.Repeat("x", 5000), &fuse.EntryOut{})
	}
	if strings.ContainsAny(log.String(), "\x1b") || !strings.Contains(log.String(), `evil\\n\\x1b`) {
		t.Errorf("log %.300s", log)
	}
	if n := strings.Count(log.String(), "\n"); n < reportsPerSecond || n > 2*reportsPerSecond {
		t.Errorf("%d lines", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	a, _ := newAdapter(&fakeTree{stat: someStat})
	h := head(1)
	var out fuse.EntryOut
	b.ReportAllocs()
	for b.Loop() {
		a.Lookup(nil, &h, "n", &out)
	}
}

func TestOpen(t *testing.T) {
	f := &fakeTree{}
	a, _ := newAdapter(f)
	in, out := &fuse.OpenIn{InHeader: head(7)}, &fuse.OpenOut{}
	if st := a.Open(nil, in, out); st != fuse.ENOSYS {
		t.Errorf("open without an audit: %v, want ENOSYS", st)
	}
	a.auditOpens = true
	for flags, want := range map[uint32]tree.Access{
		unix.O_RDONLY: tree.AccessRead, unix.O_WRONLY | unix.O_APPEND: tree.AccessWrite,
		unix.O_RDWR: tree.AccessReadWrite, execFlag: tree.AccessExec,
	} {
		in.Flags = flags
		if st := a.Open(nil, in, out); !st.Ok() || f.access != want || f.id != 7 {
			t.Errorf("open with flags %#x: %v of node %d for %q, want %q", flags, st, f.id, f.access, want)
		}
		if out.Fh != 0 || out.OpenFlags != fuse.FOPEN_KEEP_CACHE|fuse.FOPEN_NOFLUSH {
			t.Errorf("open answers handle %d, flags %#x", out.Fh, out.OpenFlags)
		}
	}
}
