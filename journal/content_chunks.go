package journal

// chunkMap maps the number of a chunk to its extents. Most files have no chunk
// but the first, which therefore costs no map. The zero value is empty.
type chunkMap struct {
	first    []Extent // of chunk 0
	hasFirst bool
	more     map[uint64][]Extent
}

func (m *chunkMap) len() int {
	if m.hasFirst {
		return len(m.more) + 1
	}
	return len(m.more)
}

func (m *chunkMap) get(k uint64) (es []Extent, ok bool) {
	if k == 0 {
		return m.first, m.hasFirst
	}
	es, ok = m.more[k]
	return es, ok
}

func (m *chunkMap) set(k uint64, es []Extent) {
	if k == 0 {
		m.first, m.hasFirst = es, true
		return
	}
	if m.more == nil {
		m.more = make(map[uint64][]Extent)
	}
	m.more[k] = es
}

func (m *chunkMap) delete(k uint64) {
	if k == 0 {
		m.first, m.hasFirst = nil, false
		return
	}
	delete(m.more, k)
}

// each calls fn for all chunks, in no order. fn may delete the chunk.
func (m *chunkMap) each(fn func(k uint64, es []Extent)) {
	if m.hasFirst {
		fn(0, m.first)
	}
	for k, es := range m.more {
		fn(k, es)
	}
}
