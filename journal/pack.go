package journal

import (
	"fmt"
	"maps"
	"os"
	"sync"
)

// packWriter appends data to the current pack. A pack's bytes carry no frames,
// so that what is written in sequence can be read, and named, as one run.
type packWriter struct {
	s *Store

	mu    sync.Mutex // protects what follows and the packFiles
	cur   *packFile  // nil: the next Put creates one
	full  []*packFile
	fresh bool // a pack was created since the last sync
	// durable is how long each pack is at least after a loss of power.
	durable map[uint32]int64
	// unnamed counts, by pack, the data that no record names yet. What is never
	// named, because the operation failed, counts until the store is closed.
	unnamed map[uint32]int
}

// packFile is a pack that is written to or not yet synced.
type packFile struct {
	num     uint32
	f       *os.File
	end     int64
	writers int  // writes under way
	dirty   bool // written since the last sync
}

// Put appends data to a pack and returns its place and checksum. It becomes
// part of history by the record that names it in Data. Safe for concurrent
// use; durable after the Sync that follows the record.
func (s *Store) Put(data []byte) (DataRef, error) {
	if err := s.writable(); err != nil {
		return DataRef{}, err
	}
	return s.packs.put(data)
}

func (p *packWriter) put(data []byte) (DataRef, error) {
	n := int64(len(data))
	pf, pos, err := p.claim(n)
	if err != nil {
		return DataRef{}, fmt.Errorf("store data: %w", err)
	}
	err = p.s.disk.write(KindPackWrite, pf.f, data, pos)
	p.done(pf, pos, n, err)
	if err != nil {
		return DataRef{}, fmt.Errorf("store data: %w", err)
	}
	return DataRef{Loc: Loc{File: pf.num, Pos: uint64(pos)}, Len: uint64(n), CRC: crcOf(data)}, nil
}

// claim reserves n bytes at the end of the current pack.
func (p *packWriter) claim(n int64) (*packFile, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur == nil || p.cur.end+n > p.s.o.PackSize && p.cur.end > headerSize {
		if err := p.createLocked(); err != nil {
			return nil, 0, err
		}
	}
	pos := p.cur.end
	p.cur.end += n
	p.cur.writers++
	if p.unnamed == nil {
		p.unnamed = map[uint32]int{}
	}
	p.unnamed[p.cur.num]++
	return p.cur, pos, nil
}

// done ends a claim. The pack is dirty only from here on, so that a sync that
// ran during the write doesn't count for it. A failed write gives its bytes
// back if no claim was made since; otherwise they stay unused.
func (p *packWriter) done(pf *packFile, pos, n int64, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pf.writers--
	if failed == nil {
		pf.dirty = true
		return
	}
	p.unnamed[pf.num]--
	if pf.end != pos+n {
		return
	}
	pf.end = pos
	if err := p.s.disk.truncate(pf.f, pos); err != nil {
		p.s.log.Warn("pack keeps bytes of a failed write", "error", err)
	}
}

// named notes that a record names data.
func (p *packWriter) named(data []DataRef) {
	if len(data) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range data {
		if n := p.unnamed[d.Loc.File]; n > 1 {
			p.unnamed[d.Loc.File] = n - 1
		} else {
			delete(p.unnamed, d.Loc.File)
		}
	}
}

// settled reports whether nothing will be written to a pack any more and
// records name all that was.
func (p *packWriter) settled(num uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (p.cur == nil || p.cur.num != num) && p.unnamed[num] == 0
}

// forget drops what is known of a pack that is removed.
func (p *packWriter) forget(num uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.durable, num)
}

// createLocked begins a new pack. The old one stays open until it is synced.
func (p *packWriter) createLocked() error {
	num := p.s.files.reserve()
	d := &dataFile{kind: kindPack, num: num, name: packName(num)}
	h := &fileHeader{magic: magicPack, file: num, id: p.s.id}
	f, err := p.s.disk.create(p.s.files.path(d), h.encode())
	if err != nil {
		return err
	}
	p.s.files.add(d)
	if p.cur != nil {
		p.full = append(p.full, p.cur)
	}
	p.cur = &packFile{num: num, f: f, end: headerSize, dirty: true}
	p.fresh = true
	return nil
}

// resume goes on in an existing pack, unless it is sealed: a fork has it, too.
func (p *packWriter) resume(d *dataFile) error {
	f, err := os.OpenFile(p.s.files.path(d), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open pack: %w", err)
	}
	both, err := shared(f)
	if err != nil || both {
		f.Close()
		return err // a fork's, too: the next Put begins another
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open pack: %w", err)
	}
	p.cur = &packFile{num: d.num, f: f, end: max(fi.Size(), headerSize)}
	return nil
}

// sync makes what was put before durable. The caller holds Store.syncMu.
func (p *packWriter) sync() error {
	dirty, sizes, fresh := p.takeDirty()
	for _, pf := range dirty {
		if err := p.s.disk.fsync(pf.f); err != nil {
			return err
		}
	}
	if fresh {
		if err := p.s.disk.syncDir(p.s.path(packDir)); err != nil {
			return err
		}
	}
	p.settle(sizes)
	return nil
}

// takeDirty returns the packs to sync, and the sizes that the sync makes
// durable: of packs that nobody is writing to.
func (p *packWriter) takeDirty() (dirty []*packFile, sizes map[uint32]int64, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sizes = map[uint32]int64{}
	all := p.full
	if p.cur != nil {
		all = append(all[:len(all):len(all)], p.cur)
	}
	for _, pf := range all {
		if !pf.dirty {
			continue
		}
		pf.dirty = false
		dirty = append(dirty, pf)
		if pf.writers == 0 {
			sizes[pf.num] = pf.end
		}
	}
	fresh, p.fresh = p.fresh, false
	return dirty, sizes, fresh
}

// settle notes the durable sizes and closes full packs that need no sync.
func (p *packWriter) settle(sizes map[uint32]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.durable == nil {
		p.durable = map[uint32]int64{}
	}
	maps.Copy(p.durable, sizes)
	kept := p.full[:0]
	for _, pf := range p.full {
		if pf.dirty || pf.writers > 0 {
			kept = append(kept, pf)
			continue
		}
		pf.f.Close()
	}
	p.full = kept
}

// durableSizes returns the sizes that packs written by this process have
// reached for good.
func (p *packWriter) durableSizes() map[uint32]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.durable)
}

func (p *packWriter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pf := range p.full {
		pf.f.Close()
	}
	if p.cur != nil {
		p.cur.f.Close()
	}
	p.cur, p.full = nil, nil
}
