package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
)

// A keep holds what is still needed of a log segment or pack that gc has taken
// away. Places in the old file stay valid: the keep's index says where the
// bytes lie now. It is read by the old file's number.

// magicKeep begins a keep.
const magicKeep = "WINKKEEP"

// span is a range of a file.
type span struct{ pos, len int64 }

func (s span) end() int64 { return s.pos + s.len }

// kept is one range in a keep.
type kept struct {
	span        // in the old file
	at   int64  // in the keep
	crc  uint32 // of the bytes
}

// keepIndex lists the ranges of a keep by their place in the old file.
type keepIndex struct {
	ranges []kept
	end    int64 // of the keep
}

// place returns where n bytes at pos lie in the keep.
func (x *keepIndex) place(pos, n int64) (int64, bool) {
	i, ok := slices.BinarySearchFunc(x.ranges, pos, func(k kept, pos int64) int {
		switch {
		case k.end() <= pos:
			return -1
		case k.pos > pos:
			return 1
		}
		return 0
	})
	if !ok || x.ranges[i].end() < pos+n {
		return 0, false
	}
	return x.ranges[i].at + pos - x.ranges[i].pos, true
}

// place returns where in the open file the n bytes lie that were stored at pos.
func (d *dataFile) place(pos, n int64) (int64, error) {
	if d.kind != kindKeep || n == 0 {
		return pos, nil
	}
	at, ok := d.index.place(pos, n)
	if !ok {
		return 0, corruptAt(d.name, -1, 0, "bytes %d to %d of file %d were not kept", pos, pos+n, d.num)
	}
	return at, nil
}

var errKeepIndex = errors.New("index is damaged")

// maxKeepIndex bounds the index that is read: 16 million ranges.
const maxKeepIndex = 256 << 20

// readKeepIndex reads the index behind the header.
func readKeepIndex(f *os.File) (*keepIndex, error) {
	var n [4]byte
	if _, err := f.ReadAt(n[:], headerSize); err != nil {
		return nil, fmt.Errorf("%w: %w", errKeepIndex, err)
	}
	size := int64(binary.LittleEndian.Uint32(n[:]))
	if size > maxKeepIndex {
		return nil, fmt.Errorf("%w: impossible length", errKeepIndex)
	}
	b := make([]byte, size+4)
	if _, err := f.ReadAt(b, headerSize+4); err != nil {
		return nil, fmt.Errorf("%w: %w", errKeepIndex, err)
	}
	if crcOf(b[:size]) != binary.LittleEndian.Uint32(b[size:]) {
		return nil, fmt.Errorf("%w: checksum does not match", errKeepIndex)
	}
	return decodeKeepIndex(b[:size], headerSize+8+size)
}

func decodeKeepIndex(b []byte, at int64) (*keepIndex, error) {
	w := &wire{b: b}
	x := &keepIndex{ranges: make([]kept, w.count(6))}
	pos := int64(0)
	for i := range x.ranges {
		gap, n := w.uvarint(), w.uvarint()
		crc := w.u32()
		if gap > maxOffset>>1 || n > maxOffset>>1 {
			return nil, errKeepIndex
		}
		pos += int64(gap)
		x.ranges[i] = kept{span: span{pos, int64(n)}, at: at, crc: crc}
		pos, at = pos+int64(n), at+int64(n)
	}
	x.end = at
	return x, w.end()
}

func appendKeepIndex(b []byte, ranges []kept) []byte {
	b = binary.AppendUvarint(b, uint64(len(ranges)))
	pos := int64(0)
	for _, r := range ranges {
		b = binary.AppendUvarint(b, uint64(r.pos-pos))
		b = binary.AppendUvarint(b, uint64(r.len))
		b = binary.LittleEndian.AppendUint32(b, r.crc)
		pos = r.end()
	}
	return b
}

// keepSpans writes a keep with ranges of a file, which must be in order and
// apart. Its bytes are durable on return, its name is after the next syncDir.
func (s *Store) keepSpans(num uint32, at Seq, spans []span) (*dataFile, error) {
	ranges, err := s.sumSpans(num, spans)
	if err != nil {
		return nil, err
	}
	index := appendKeepIndex(nil, ranges)
	h := (&fileHeader{magic: magicKeep, file: num, first: at, id: s.id}).encode()
	h = binary.LittleEndian.AppendUint32(h, uint32(len(index)))
	h = append(h, index...)
	h = binary.LittleEndian.AppendUint32(h, crcOf(index))
	d := &dataFile{kind: kindKeep, num: num, first: at, name: keepName(num, at)}
	err = s.disk.replace(s.files.path(d), func(w io.Writer) error {
		if _, err := w.Write(h); err != nil {
			return err
		}
		return s.eachPiece(num, spans, func(_ int, p []byte) error {
			_, err := w.Write(p)
			return err
		})
	})
	return d, err
}

// sumSpans reads the ranges once for their checksums.
func (s *Store) sumSpans(num uint32, spans []span) ([]kept, error) {
	ranges := make([]kept, len(spans))
	for i, sp := range spans {
		ranges[i].span = sp
	}
	err := s.eachPiece(num, spans, func(i int, p []byte) error {
		ranges[i].crc = crc32.Update(ranges[i].crc, castagnoli, p)
		return nil
	})
	return ranges, err
}

// eachPiece reads ranges of a file piece by piece.
func (s *Store) eachPiece(num uint32, spans []span, fn func(i int, p []byte) error) error {
	buf := make([]byte, 256<<10)
	for i, sp := range spans {
		for pos := sp.pos; pos < sp.end(); pos += int64(len(buf)) {
			p := buf[:min(int64(len(buf)), sp.end()-pos)]
			if err := s.files.readAt(Loc{File: num, Pos: uint64(pos)}, p); err != nil {
				return err
			}
			if err := fn(i, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKeep compares a keep's bytes with their checksums and calls bad for each
// range that differs.
func checkKeep(f *os.File, x *keepIndex, bad func(k kept, why string)) {
	for _, k := range x.ranges {
		var crc uint32
		n, err := io.Copy(crcWriter{&crc}, io.NewSectionReader(f, k.at, k.len))
		switch {
		case err != nil:
			bad(k, err.Error())
		case n != k.len:
			bad(k, "the file is cut short")
		case crc != k.crc:
			bad(k, errDataCRC.Error())
		}
	}
}

// crcWriter sums what is written to it.
type crcWriter struct{ crc *uint32 }

func (w crcWriter) Write(p []byte) (int, error) {
	*w.crc = crc32.Update(*w.crc, castagnoli, p)
	return len(p), nil
}
