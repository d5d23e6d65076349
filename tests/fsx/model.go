package fsx

import "golang.org/x/sys/unix"

// model is what the file must hold.
type model struct{ data []byte }

func (m *model) size() int64 { return int64(len(m.data)) }

func (m *model) truncate(n int64) {
	if n <= m.size() {
		m.data = m.data[:n:n]
		return
	}
	m.data = append(m.data, make([]byte, n-m.size())...)
}

func (m *model) write(b []byte, off int64) {
	if len(b) == 0 {
		return
	}
	if end := off + int64(len(b)); end > m.size() {
		m.truncate(end)
	}
	copy(m.data[off:], b)
}

func (m *model) zero(off, end int64) {
	if end = min(end, m.size()); off < end {
		clear(m.data[off:end])
	}
}

func (m *model) fallocate(o op) {
	end := o.off + o.n
	if o.flags&unix.FALLOC_FL_KEEP_SIZE == 0 && end > m.size() {
		m.truncate(end)
	}
	if o.flags&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0 {
		m.zero(o.off, end)
	}
}

// at returns the bytes that a read returns.
func (m *model) at(off, n int64) []byte {
	if off >= m.size() {
		return nil
	}
	return m.data[off:min(off+n, m.size())]
}

// bytesOf returns the bytes that the operation writes: no two neighbours are
// equal, and none is zero.
func bytesOf(o op) []byte {
	b := make([]byte, o.n)
	for i := range b {
		x := uint64(o.pattern)<<32 + uint64(o.off) + uint64(i)
		b[i] = byte(x*0x9e3779b97f4a7c15>>56) | 1
	}
	return b
}
