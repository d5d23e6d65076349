package journal

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	keepSuffix = ".keep"
	baseSuffix = ".base"
)

// maxOpenFiles bounds the descriptors that readers keep.
const maxOpenFiles = 128

// fileKind is what a file of the journal holds.
type fileKind uint8

const (
	kindLog  fileKind = iota + 1 // records
	kindPack                     // data
	kindKeep                     // what gc kept of a log segment or pack
	kindBase                     // the state at the record that history begins behind
)

// dataFile is one file of the log or of the packs.
type dataFile struct {
	kind  fileKind
	num   uint32 // 0 for a base
	first Seq    // log: first record; keep and base: the record that history begins behind
	name  string // relative to the state directory
	found int64  // length when the directory was listed
	f     *os.File
	index *keepIndex // of a keep that is open
}

func (d *dataFile) isLog() bool { return d.kind == kindLog }

func logName(first Seq, num uint32) string {
	return filepath.Join(logDir, fmt.Sprintf("%016x-%08x%s", uint64(first), num, logSuffix))
}

func packName(num uint32) string {
	return filepath.Join(packDir, fmt.Sprintf("%08x%s", num, packSuffix))
}

func keepName(num uint32, at Seq) string {
	return filepath.Join(packDir, fmt.Sprintf("%08x-%016x%s", num, uint64(at), keepSuffix))
}

func baseName(at Seq) string {
	return filepath.Join(logDir, fmt.Sprintf("%016x%s", uint64(at), baseSuffix))
}

// parseName returns the file with the name relative to the state directory,
// nil if it is not one of the journal's.
func parseName(name string) *dataFile {
	d := &dataFile{name: name}
	want := ""
	base := filepath.Base(name)
	var err error
	switch filepath.Ext(base) {
	case logSuffix:
		d.kind = kindLog
		_, err = fmt.Sscanf(base, "%016x-%08x.log", (*uint64)(&d.first), &d.num)
		want = logName(d.first, d.num)
	case packSuffix:
		d.kind = kindPack
		_, err = fmt.Sscanf(base, "%08x.pack", &d.num)
		want = packName(d.num)
	case keepSuffix:
		d.kind = kindKeep
		_, err = fmt.Sscanf(base, "%08x-%016x.keep", &d.num, (*uint64)(&d.first))
		want = keepName(d.num, d.first)
	case baseSuffix:
		d.kind = kindBase
		_, err = fmt.Sscanf(base, "%016x.base", (*uint64)(&d.first))
		want = baseName(d.first)
	}
	if err != nil || name != want || (d.num == 0) != (d.kind == kindBase) || (d.first == 0) != (d.kind == kindPack) {
		return nil
	}
	return d
}

// fileTable knows the log segments and packs by number and reads from them.
type fileTable struct {
	dir string

	mu     sync.RWMutex         // protects what follows; held for reading during a read
	byNum  map[uint32]*dataFile // where data of that number is read; nil when closed
	opened int
	next   uint32 // next free number

	// As listed by load; protected by nothing, read before the store is in use.
	keeps, bases []*dataFile
	partial      []*dataFile // files that were being written
	obsolete     []*dataFile // out of use, to be removed; protected by mu
}

// load fills the table from the directories and returns the names of files
// that are not the journal's. The log's lengths are taken before packs are
// listed, so that beside a process that writes, whatever the log names up to
// there is listed too.
func (t *fileTable) load() (strangers []string, err error) {
	t.byNum, t.next = map[uint32]*dataFile{}, 1
	t.keeps, t.bases, t.partial = nil, nil, nil
	for _, sub := range []string{logDir, packDir} {
		entries, err := os.ReadDir(filepath.Join(t.dir, sub))
		if err != nil {
			return nil, fmt.Errorf("list journal: %w", err)
		}
		for _, e := range entries {
			name := filepath.Join(sub, e.Name())
			d := parseName(name)
			if p := parseName(strings.TrimSuffix(name, tmpSuffix)); d == nil && p != nil && p.kind >= kindKeep {
				p.name = name
				t.partial = append(t.partial, p)
				continue
			}
			if d == nil || !e.Type().IsRegular() || !t.found(d) {
				strangers = append(strangers, name)
				continue
			}
			if fi, err := e.Info(); err == nil {
				d.found = fi.Size()
			}
			t.next = max(t.next, d.num+1)
		}
	}
	slices.SortFunc(t.keeps, func(a, b *dataFile) int { return cmp.Or(cmp.Compare(a.num, b.num), cmpSeq(a.first, b.first)) })
	slices.SortFunc(t.bases, func(a, b *dataFile) int { return cmpSeq(a.first, b.first) })
	return strangers, nil
}

// found notes a file that was found. It returns false for a second log segment
// or pack of one number.
func (t *fileTable) found(d *dataFile) bool {
	switch d.kind {
	case kindKeep:
		t.keeps = append(t.keeps, d)
	case kindBase:
		t.bases = append(t.bases, d)
	default:
		if t.byNum[d.num] != nil {
			return false
		}
		t.byNum[d.num] = d
	}
	return true
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
	return t.list(func(d *dataFile) bool { return d.kind == kindPack }, func(a, b *dataFile) int { return int(a.num) - int(b.num) })
}

// kept returns the keeps in use, in order.
func (t *fileTable) kept() []*dataFile {
	return t.list(func(d *dataFile) bool { return d.kind == kindKeep }, func(a, b *dataFile) int { return int(a.num) - int(b.num) })
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
			pos, err := d.place(int64(l.Pos), int64(len(p)))
			if err != nil {
				t.mu.RUnlock()
				return err
			}
			n, err := d.f.ReadAt(p, pos)
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
	if d.kind == kindKeep {
		if d.index, err = readKeepIndex(f); err != nil {
			f.Close()
			return corruptAt(d.name, 0, 0, "%v", err)
		}
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
			d.f, d.index = nil, nil
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
	for _, d := range t.bases {
		logs += d.found
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
