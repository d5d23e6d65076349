package dev

import (
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// memfs is a flat directory of files in memory. Operations on a name that
// begins with "stuck" take as long as the channel release is open.
type memfs struct {
	fuse.RawFileSystem
	release chan struct{}

	mu    sync.Mutex
	names map[string]uint64
	files map[uint64]*memfile
	next  uint64
	conn  *Conn // for files that notify when they are written
}

type memfile struct {
	name string
	data []byte
}

const memTTL = time.Hour

func newMemfs() *memfs {
	m := &memfs{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), release: make(chan struct{}),
		names: map[string]uint64{}, files: map[uint64]*memfile{}, next: 2,
	}
	m.put("hello", []byte("hello world\n"))
	m.put("big", []byte(strings.Repeat("0123456789abcdef", 4<<20/16)))
	return m
}

func (m *memfs) put(name string, data []byte) uint64 {
	id := m.next
	m.next++
	m.names[name], m.files[id] = id, &memfile{name, data}
	return id
}

func (m *memfs) String() string { return "memfs" }

// wait blocks on files called stuck, without the lock.
func (m *memfs) wait(id uint64) {
	m.mu.Lock()
	f := m.files[id]
	m.mu.Unlock()
	if f != nil && strings.HasPrefix(f.name, "stuck") {
		<-m.release
	}
}

func (m *memfs) attr(id uint64, a *fuse.Attr) {
	a.Ino, a.Nlink, a.Blksize = id, 1, 4096
	if id == rootID {
		a.Mode = fuse.S_IFDIR | 0o777
		return
	}
	a.Mode, a.Size = fuse.S_IFREG|0o666, uint64(len(m.files[id].data))
}

func (m *memfs) entry(id uint64, out *fuse.EntryOut) fuse.Status {
	out.NodeId = id
	out.SetEntryTimeout(memTTL)
	out.SetAttrTimeout(memTTL)
	m.attr(id, &out.Attr)
	return fuse.OK
}

func (m *memfs) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "panic" {
		panic("as asked")
	}
	if id, ok := m.names[name]; ok {
		return m.entry(id, out)
	}
	out.SetEntryTimeout(memTTL)
	return fuse.OK
}

func (m *memfs) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	out.SetTimeout(memTTL)
	m.attr(Root(in.NodeId), &out.Attr)
	return fuse.OK
}

func (m *memfs) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		f := m.files[in.NodeId]
		f.data = append(f.data, make([]byte, size)...)[:size]
	}
	m.attr(Root(in.NodeId), &out.Attr)
	return fuse.OK
}

func (m *memfs) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(m.put(name, nil), &out.EntryOut)
}

func (m *memfs) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(m.put(name, nil), out)
}

func (m *memfs) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.names, name)
	return fuse.OK
}

func (m *memfs) Open(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.ENOSYS }

func (m *memfs) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

func (m *memfs) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	m.wait(in.NodeId)
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.files[in.NodeId].data
	off := min(in.Offset, uint64(len(d)))
	return fuse.ReadResultData(buf[:copy(buf, d[off:])]), fuse.OK
}

func (m *memfs) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	m.wait(in.NodeId)
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[in.NodeId]
	if f.name == "control" {
		return uint32(len(data)), m.control(string(data))
	}
	end := in.Offset + uint64(len(data))
	if end > uint64(len(f.data)) {
		f.data = append(f.data, make([]byte, end-uint64(len(f.data)))...)
	}
	copy(f.data[in.Offset:], data)
	return uint32(len(data)), fuse.OK
}

// control changes things behind the kernel's back, with or without telling it.
func (m *memfs) control(cmd string) fuse.Status {
	f := strings.Fields(cmd)
	switch f[0] {
	case "release":
		close(m.release)
	case "set", "set-notify":
		id, ok := m.names[f[1]]
		if !ok {
			m.put(f[1], []byte(f[2]))
		} else {
			m.files[id].data = []byte(f[2])
		}
		if f[0] == "set-notify" {
			m.conn.Queue().Entry(rootID, f[1])
			m.conn.Queue().Inode(id)
			m.conn.Queue().Inode(rootID)
		}
	case "store":
		m.conn.Queue().Store(m.names[f[1]], 0, []byte(f[2]))
	case "epoch":
		m.conn.Queue().IncEpoch()
	case "expire":
		m.conn.Queue().Expire(rootID, f[1])
	}
	return fuse.OK
}

func (m *memfs) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	m.wait(in.NodeId)
	return fuse.OK
}

func (m *memfs) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := max(in.Offset+1, 2); id < m.next; id++ {
		f := m.files[id]
		if m.names[f.name] != id {
			continue
		}
		if !out.AddDirEntry(fuse.DirEntry{Name: f.name, Ino: id, Mode: fuse.S_IFREG, Off: id}) {
			break
		}
	}
	return fuse.OK
}

func (m *memfs) ReadDirPlus(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := max(in.Offset+1, 2); id < m.next; id++ {
		f := m.files[id]
		if m.names[f.name] != id {
			continue
		}
		e := out.AddDirLookupEntry(fuse.DirEntry{Name: f.name, Ino: id, Mode: fuse.S_IFREG, Off: id})
		if e == nil {
			break
		}
		m.entry(id, e)
	}
	return fuse.OK
}

func (m *memfs) StatFs(_ <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.NameLen = 4096, 255
	return fuse.OK
}

func (m *memfs) GetXAttr(<-chan struct{}, *fuse.InHeader, string, []byte) (uint32, fuse.Status) {
	return 0, fuse.Status(unix.ENODATA)
}
