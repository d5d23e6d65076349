package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// frameHeader stands before each record in the log. Behind it come the inline
// data and then the encoded record, so that the place of the data is known
// before the record, which names it, is encoded.
type frameHeader struct {
	crc    uint32
	record uint32 // length of the encoded record
	data   uint32 // length of the inline data
	synced Seq    // all records up to here were durable when this was written
}

const frameSize = 24

// frameMagic begins each frame.
var frameMagic = [4]byte{'W', 'R', 'E', 'C'}

var (
	errFrameCut   = errors.New("record is cut short")
	errFrameMagic = errors.New("no record where one is expected")
	errFrameSize  = errors.New("record has an impossible length")
	errFrameCRC   = errors.New("record does not match its checksum")
	errInlineRef  = errors.New("inline data are not named by the record")
	errInlineCRC  = errors.New("inline data do not match their checksum")
)

func (h *frameHeader) size() int64 { return frameSize + int64(h.data) + int64(h.record) }

// appendFrame appends a frame at position pos of the segment: the record
// encoded by r.Data's last element pointing at the inline data.
func appendFrame(b []byte, id *journalID, r *Record, inline []byte, synced Seq) (frame, record []byte) {
	start := len(b)
	b = append(b, frameMagic[:]...)
	b = append(b, make([]byte, frameSize-4)...)
	b = append(b, inline...)
	rec := len(b)
	b = appendRecord(b, r)
	h := b[start : start+frameSize]
	binary.LittleEndian.PutUint32(h[8:], uint32(len(b)-rec))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(inline)))
	binary.LittleEndian.PutUint64(h[16:], uint64(synced))
	binary.LittleEndian.PutUint32(h[4:], frameCRC(id, h, b[rec:]))
	return b, b[rec:]
}

// frameCRC is the checksum over the journal's id, the header behind the
// checksum, and the record. The inline data have their own in the record.
func frameCRC(id *journalID, header, record []byte) uint32 {
	c := crc32.Update(0, castagnoli, id[:])
	c = crc32.Update(c, castagnoli, header[8:frameSize])
	return crc32.Update(c, castagnoli, record)
}

func decodeFrameHeader(b []byte) (frameHeader, error) {
	if len(b) < frameSize {
		return frameHeader{}, errFrameCut
	}
	if [4]byte(b[:4]) != frameMagic {
		return frameHeader{}, errFrameMagic
	}
	h := frameHeader{
		crc:    binary.LittleEndian.Uint32(b[4:]),
		record: binary.LittleEndian.Uint32(b[8:]),
		data:   binary.LittleEndian.Uint32(b[12:]),
		synced: Seq(binary.LittleEndian.Uint64(b[16:])),
	}
	if h.record > MaxRecord || h.data > MaxInline || h.record == 0 {
		return h, errFrameSize
	}
	return h, nil
}

// frame is one frame read back.
type frame struct {
	loc    Loc // of the header
	header frameHeader
	record []byte // valid until the next read
}

func (f *frame) hash() [32]byte { return sha256.Sum256(f.record) }
func (f *frame) end() int64     { return int64(f.loc.Pos) + f.header.size() }

// inlineRef checks that the record names its frame's inline data and returns
// the reference, nil if there are none.
func (f *frame) inlineRef(r *Record) (*DataRef, error) {
	if f.header.data == 0 {
		return nil, nil
	}
	want := Loc{File: f.loc.File, Pos: f.loc.Pos + frameSize}
	for i := range r.Data {
		if d := &r.Data[i]; d.Loc == want && d.Len == uint64(f.header.data) {
			return d, nil
		}
	}
	return nil, errInlineRef
}
