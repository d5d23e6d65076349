package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errShort means that an encoding ends too early.
var errShort = errors.New("encoding is cut short")

// wire reads the primitive encodings. The first failure sticks: later reads
// return zero values, and the caller looks at err once.
type wire struct {
	b   []byte
	err error
}

func (w *wire) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.b = nil
}

func (w *wire) u8() uint8 {
	if len(w.b) < 1 {
		w.fail(errShort)
		return 0
	}
	v := w.b[0]
	w.b = w.b[1:]
	return v
}

func (w *wire) u32() uint32 {
	if len(w.b) < 4 {
		w.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint32(w.b)
	w.b = w.b[4:]
	return v
}

func (w *wire) u64() uint64 {
	if len(w.b) < 8 {
		w.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(w.b)
	w.b = w.b[8:]
	return v
}

func (w *wire) uvarint() uint64 {
	v, n := binary.Uvarint(w.b)
	if n <= 0 {
		w.fail(errShort)
		return 0
	}
	w.b = w.b[n:]
	return v
}

func (w *wire) varint() int64 {
	v, n := binary.Varint(w.b)
	if n <= 0 {
		w.fail(errShort)
		return 0
	}
	w.b = w.b[n:]
	return v
}

func (w *wire) uvarint32() uint32 {
	v := w.uvarint()
	if v > 1<<32-1 {
		w.fail(fmt.Errorf("number %d does not fit 32 bits", v))
		return 0
	}
	return uint32(v)
}

// bytes returns the next n bytes without copying.
func (w *wire) bytes(n uint64) []byte {
	if n > uint64(len(w.b)) {
		w.fail(errShort)
		return nil
	}
	v := w.b[:n:n]
	w.b = w.b[n:]
	return v
}

func (w *wire) str() string { return string(w.bytes(w.uvarint())) }

// count reads the length of a list whose elements take at least size bytes
// each, so that a hostile length can't make the reader allocate.
func (w *wire) count(size int) int {
	n := w.uvarint()
	if n > uint64(len(w.b)/size) {
		w.fail(errShort)
		return 0
	}
	return int(n)
}

// end fails if anything is left.
func (w *wire) end() error {
	if w.err == nil && len(w.b) > 0 {
		w.fail(fmt.Errorf("%d bytes behind the end of the encoding", len(w.b)))
	}
	return w.err
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
