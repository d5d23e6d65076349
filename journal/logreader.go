package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// logReader reads frames of one segment. It reads ahead in its own buffer and
// never looks at bytes behind limit.
type logReader struct {
	f     *os.File
	file  uint32
	id    *journalID
	limit int64 // end of what may be read
	buf   []byte
	base  int64 // position of buf[0]
}

const readAhead = 64 << 10

func newLogReader(f *os.File, file uint32, id *journalID, limit int64) *logReader {
	return &logReader{f: f, file: file, id: id, limit: limit}
}

// view returns the n bytes at pos, valid until the next view. It returns
// errFrameCut if they reach behind the limit.
func (l *logReader) view(pos, n int64) ([]byte, error) {
	if n > l.limit-pos {
		return nil, errFrameCut
	}
	if pos >= l.base && pos+n <= l.base+int64(len(l.buf)) {
		return l.buf[pos-l.base:][:n], nil
	}
	want := min(max(n, readAhead), l.limit-pos)
	if int64(cap(l.buf)) < want {
		l.buf = make([]byte, want)
	}
	l.buf, l.base = l.buf[:want], pos
	m, err := l.f.ReadAt(l.buf, pos)
	if int64(m) < n {
		l.buf = l.buf[:0]
		if err == nil || errors.Is(err, io.EOF) {
			return nil, errFrameCut
		}
		return nil, fmt.Errorf("read log: %w", err)
	}
	l.buf = l.buf[:m]
	return l.buf[:n], nil
}

// header returns the frame header at pos.
func (l *logReader) header(pos int64) (frameHeader, error) {
	b, err := l.view(pos, frameSize)
	if err != nil {
		return frameHeader{}, err
	}
	h, err := decodeFrameHeader(b)
	if err == nil && h.size() > l.limit-pos {
		err = errFrameCut
	}
	return h, err
}

// frame reads the frame at pos and checks its record. The inline data are not
// looked at.
func (l *logReader) frame(pos int64) (*frame, error) {
	b, err := l.view(pos, frameSize)
	if err != nil {
		return nil, err
	}
	h, err := decodeFrameHeader(b)
	if err != nil {
		return nil, err
	}
	head := [frameSize]byte(b)
	rec, err := l.view(pos+frameSize+int64(h.data), int64(h.record))
	if err != nil {
		return nil, err
	}
	if frameCRC(l.id, head[:], rec) != h.crc {
		return nil, errFrameCRC
	}
	return &frame{loc: Loc{File: l.file, Pos: uint64(pos)}, header: h, record: rec}, nil
}

// checkInline compares a frame's inline data with the record's checksum. It
// ends the validity of the frame's bytes.
func (l *logReader) checkInline(f *frame, r *Record) error {
	ref, err := f.inlineRef(r)
	if err != nil || ref == nil {
		return err
	}
	b, err := l.view(int64(ref.Loc.Pos), int64(ref.Len))
	if err != nil {
		return err
	}
	if crcOf(b) != ref.CRC {
		return errInlineCRC
	}
	return nil
}

// resync returns the first valid frame at or behind pos, nil if there is none.
func (l *logReader) resync(pos int64) (*frame, error) {
	for pos < l.limit {
		b, err := l.view(pos, min(readAhead, l.limit-pos))
		if err != nil {
			return nil, err
		}
		i := bytes.Index(b, frameMagic[:])
		if i < 0 {
			pos += int64(max(len(b)-len(frameMagic)+1, 1))
			continue
		}
		f, err := l.frame(pos + int64(i))
		if err == nil {
			return f, nil
		}
		pos += int64(i) + 1
	}
	return nil, nil
}
