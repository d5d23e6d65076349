package journal

import (
	"slices"
)

// beginAt finds the base that the database says history begins with, and takes
// the files of an unended or just ended collection out of use.
func (s *Store) beginAt(m *dbMeta) error {
	if m.base != 0 {
		d := s.files.baseAt(m.base)
		if d == nil {
			return corruptAt(baseName(m.base), -1, m.base, "the file is missing")
		}
		r, err := openBase(&s.files, d, m.id)
		if err != nil {
			return err
		}
		r.close()
		s.base, s.trimmed = &r.base, m.base
	}
	s.files.settle(m.base)
	logs := s.files.logs()
	if m.base != 0 && (len(logs) == 0 || logs[0].first != m.base+1) {
		return corruptAt(logDir, -1, m.base+1, "the log segment that begins with record %d is missing", m.base+1)
	}
	return nil
}

func (t *fileTable) baseAt(at Seq) *dataFile {
	i := slices.IndexFunc(t.bases, func(d *dataFile) bool { return d.first == at })
	if i < 0 {
		return nil
	}
	return t.bases[i]
}

// baseFiles returns the base in use, if there is one.
func (t *fileTable) baseFiles() []*dataFile {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.bases)
}

// settle takes into use what belongs to a history that begins behind the record
// at, and out of use what doesn't: keeps and bases of collections that did not
// come to their end, segments and packs that were replaced, and what an older
// collection kept and a newer one kept again. See FORMAT.md.
func (t *fileTable) settle(at Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	use := map[uint32]*dataFile{}
	for _, d := range t.keeps { // ascending: the newest good one counts
		old := use[d.num]
		switch {
		case d.first > at:
			t.obsolete = append(t.obsolete, d)
			continue
		case old != nil:
			t.obsolete = append(t.obsolete, old)
		}
		use[d.num] = d
	}
	for _, d := range t.passedLocked(at) {
		t.obsolete = append(t.obsolete, d)
		delete(t.byNum, d.num)
	}
	for num, d := range use {
		if old := t.byNum[num]; old != nil {
			t.obsolete = append(t.obsolete, old)
		}
		t.byNum[num] = d
	}
	t.bases = slices.DeleteFunc(t.bases, func(d *dataFile) bool {
		if d.first != at {
			t.obsolete = append(t.obsolete, d)
		}
		return d.first != at
	})
	t.obsolete = append(t.obsolete, t.partial...)
	t.keeps, t.partial = nil, nil
}

// passedLocked returns the log segments that have only records up to at.
func (t *fileTable) passedLocked(at Seq) []*dataFile {
	var logs []*dataFile
	for _, d := range t.byNum {
		if d.isLog() {
			logs = append(logs, d)
		}
	}
	slices.SortFunc(logs, func(a, b *dataFile) int { return cmpSeq(a.first, b.first) })
	i := slices.IndexFunc(logs, func(d *dataFile) bool { return d.first > at })
	if i < 0 || logs[i].first != at+1 {
		return nil // damage, or history begins with record 1
	}
	return logs[:i]
}

// removeObsolete removes the files out of use. What can't be removed now is
// tried again by the next Open.
func (s *Store) removeObsolete() {
	for _, d := range s.files.takeObsolete() {
		s.log.Info("file that a collection replaced is removed", "file", d.name)
		if err := s.disk.remove(s.files.path(d)); err != nil {
			s.log.Warn("file that a collection replaced stays", "file", d.name, "error", err)
		}
	}
}

// takeObsolete returns the files out of use in the order in which they are
// removed: while a database could still be made from an older base and its log,
// the base stays.
func (t *fileTable) takeObsolete() []*dataFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.obsolete
	t.obsolete = nil
	slices.SortStableFunc(out, func(a, b *dataFile) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return cmpSeq(a.first, b.first)
	})
	return out
}
