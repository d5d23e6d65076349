package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// FormatVersion is the version of the format that this package writes. It is
// described in FORMAT.md.
const FormatVersion = 3

// castagnoli is the polynomial of all checksums (CRC-32C).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crcOf(b []byte) uint32 { return crc32.Update(0, castagnoli, b) }

// headerSize is the length of the header of log segments and packs.
const headerSize = 80

const (
	magicLog  = "WINKLOG\n"
	magicPack = "WINKPAK\n"
)

var (
	// errHeader means that a file's header is not one.
	errHeader = errors.New("header is damaged")
	// errHeaderCut means that the file ends within its header.
	errHeaderCut = fmt.Errorf("%w: the file is too short for one", errHeader)
)

// journalID is a random number that all files of one journal carry. Frames'
// checksums start from it, so that bytes written into the workspace can't pass
// for frames.
type journalID [16]byte

// fileHeader is the beginning of a log segment or pack.
type fileHeader struct {
	magic string
	file  uint32
	first Seq // log: sequence number of the first record
	id    journalID
	prev  [32]byte // log: hash of the record before the first
}

func (h *fileHeader) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, h.magic...)
	b = binary.LittleEndian.AppendUint32(b, FormatVersion)
	b = binary.LittleEndian.AppendUint32(b, h.file)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.first))
	b = append(b, h.id[:]...)
	b = append(b, h.prev[:]...)
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crcOf(b))
}

// decodeHeader reads a header. ErrNewerFormat and ErrOlderFormat are returned
// for a valid header of another version only, so that damage is not taken for one.
func decodeHeader(b []byte, magic string) (*fileHeader, error) {
	if len(b) < headerSize {
		return nil, errHeaderCut
	}
	b = b[:headerSize]
	if string(b[:8]) != magic {
		return nil, fmt.Errorf("%w: wrong magic number", errHeader)
	}
	if crcOf(b[:headerSize-4]) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return nil, fmt.Errorf("%w: checksum does not match", errHeader)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != FormatVersion {
		if v > FormatVersion {
			return nil, fmt.Errorf("%w: format %d, this winkfs knows %d", ErrNewerFormat, v, FormatVersion)
		}
		return nil, fmt.Errorf("%w: format %d, this winkfs knows %d", ErrOlderFormat, v, FormatVersion)
	}
	h := &fileHeader{magic: magic, file: binary.LittleEndian.Uint32(b[12:]), first: Seq(binary.LittleEndian.Uint64(b[16:]))}
	copy(h.id[:], b[24:])
	copy(h.prev[:], b[40:])
	return h, nil
}
