package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Names within the state directory.
const (
	dbName     = "journal.db"
	logDir     = "wal"
	packDir    = "objects"
	lockName   = "lock"
	logSuffix  = ".log"
	packSuffix = ".pack"
)

// maxOpenFiles bounds the descriptors that readers keep.
const maxOpenFiles = 128

// dataFile is one log segment or pack.
type dataFile struct {
	num   uint32
	first Seq    // log: sequence number of the first record; 0 = a pack
	name  string // relative to the state directory
	found int64  // length when the directory was listed
	f     *os.File
}

func (d *dataFile) isLog() bool { return d.first != 0 }

func logName(first Seq, num uint32) string {
	return filepath.Join(logDir, fmt.Sprintf("%016x-%08x%s", uint64(first), num, logSuffix))
}

func packName(num uint32) string {
	return filepath.Join(packDir, fmt.Sprintf("%08x%s", num, packSuffix))
}

// parseName returns the file with the name relative to the state directory,
// nil if it is not one of the journal's.
func parseName(name string) *dataFile {
	d := &dataFile{name: name}
	base := filepath.Base(name)
	if _, err := fmt.Sscanf(base, "%016x-%08x.log", (*uint64)(&d.first), &d.num); err == nil && name == logName(d.first, d.num) && d.first != 0 {
		return d
	}
	d.first = 0
	if _, err := fmt.Sscanf(base, "%08x.pack", &d.num); err == nil && name == packName(d.num) {
		return d
	}
	return nil
}

// fileTable knows the log segments and packs by number and reads from them.
type fileTable struct {
	dir string

	mu     sync.RWMutex         // protects what follows; held for reading during a read
	byNum  map[uint32]*dataFile // nil when closed
	opened int
	next   uint32 // next free number
}

// load fills the table from the directories and returns the names of files
// that are not the journal's. The log's lengths are taken before packs are
// listed, so that beside a process that writes, whatever the log names up to
// there is listed too.
func (t *fileTable) load() (strangers []string, err error) {
	t.byNum, t.next = map[uint32]*dataFile{}, 1
	for _, sub := range []string{logDir, packDir} {
		entries, err := os.ReadDir(filepath.Join(t.dir, sub))
		if err != nil {
			return nil, fmt.Errorf("list journal: %w", err)
		}
		for _, e := range entries {
			name := filepath.Join(sub, e.Name())
			d := parseName(name)
			if d == nil || d.num == 0 || !e.Type().IsRegular() || t.byNum[d.num] != nil {
				strangers = append(strangers, name)
				continue
			}
			if fi, err := e.Info(); err == nil {
				d.found = fi.Size()
			}
			t.byNum[d.num] = d
			t.next = max(t.next, d.num+1)
		}
	}
	return strangers, nil
}

// reserve returns an unused file number.
func (t *fileTable) reserve() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.next
	t.next++
	return n
}

func (t *fileTable) add(d *dataFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byNum[d.num] = d
}

func (t *fileTable) forget(num uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.byNum[num]; d != nil && d.f != nil {
		d.f.Close()
		t.opened--
	}
	delete(t.byNum, num)
}

func (t *fileTable) get(num uint32) *dataFile {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byNum[num]
}

// logs returns the log segments in order.
func (t *fileTable) logs() []*dataFile {
	return t.list(func(d *dataFile) bool { return d.isLog() }, func(a, b *dataFile) int {
		if a.first != b.first {
			return cmpSeq(a.first, b.first)
		}
		return int(a.num) - int(b.num)
	})
}

// packs returns the packs in order.
func (t *fileTable) packs() []*dataFile {
	return t.list(func(d *dataFile) bool { return !d.isLog() }, func(a, b *dataFile) int { return int(a.num) - int(b.num) })
}

func (t *fileTable) list(want func(*dataFile) bool, cmp func(a, b *dataFile) int) []*dataFile {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []*dataFile
	for _, d := range t.byNum {
		if want(d) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, cmp)
	return out
}

func cmpSeq(a, b Seq) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// path returns the path of a file.
func (t *fileTable) path(d *dataFile) string { return filepath.Join(t.dir, d.name) }

// readAt fills p from the place.
func (t *fileTable) readAt(l Loc, p []byte) error {
	if l.Pos > maxOffset {
		return fmt.Errorf("read stored data: position %d is out of range", l.Pos)
	}
	for {
		t.mu.RLock()
		d, closed := t.byNum[l.File], t.byNum == nil
		if closed {
			t.mu.RUnlock()
			return ErrClosed
		}
		if d == nil {
			t.mu.RUnlock()
			return corruptAt(fmt.Sprintf("file %d", l.File), -1, 0, "it is missing")
		}
		if d.f != nil {
			n, err := d.f.ReadAt(p, int64(l.Pos))
			t.mu.RUnlock()
			if n == len(p) {
				return nil
			}
			if errors.Is(err, io.EOF) {
				return corruptAt(d.name, int64(l.Pos), 0, "the file ends before stored data")
			}
			return fmt.Errorf("read stored data: %w", err)
		}
		t.mu.RUnlock()
		if err := t.open(l.File); err != nil {
			return err
		}
	}
}

// open makes a file readable, closing another if too many are open.
func (t *fileTable) open(num uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.byNum[num]
	if d == nil || d.f != nil {
		return nil
	}
	f, err := os.Open(t.path(d))
	if err != nil {
		return fmt.Errorf("open stored data: %w", err)
	}
	if t.opened >= maxOpenFiles {
		t.closeOne()
	}
	d.f = f
	t.opened++
	return nil
}

func (t *fileTable) closeOne() {
	for _, d := range t.byNum {
		if d.f != nil {
			d.f.Close()
			d.f = nil
			t.opened--
			return
		}
	}
}

func (t *fileTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.byNum {
		if d.f != nil {
			d.f.Close()
			d.f = nil
		}
	}
	t.opened = 0
	t.byNum = nil
}

// sizes returns the bytes in log segments and packs.
func (t *fileTable) sizes() (logs, packs int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, d := range t.byNum {
		fi, err := os.Stat(t.path(d))
		if err != nil {
			continue
		}
		if d.isLog() {
			logs += fi.Size()
		} else {
			packs += fi.Size()
		}
	}
	return logs, packs
}

func (t *fileTable) size(d *dataFile) (int64, error) {
	fi, err := os.Stat(t.path(d))
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// checkData compares stored data with their checksum.
func (t *fileTable) checkData(d DataRef) error {
	var crc uint32
	buf := make([]byte, min(d.Len, 1<<20))
	for off := uint64(0); off < d.Len; off += uint64(len(buf)) {
		buf = buf[:min(uint64(len(buf)), d.Len-off)]
		if err := t.readAt(Loc{File: d.Loc.File, Pos: d.Loc.Pos + off}, buf); err != nil {
			return err
		}
		crc = crc32.Update(crc, castagnoli, buf)
	}
	if crc != d.CRC {
		return errDataCRC
	}
	return nil
}

var errDataCRC = errors.New("stored data do not match their checksum")
