package diffview

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
)

// oid is the id that git gives a blob.
type oid [sha1.Size]byte

func (o oid) String() string { return hex.EncodeToString(o[:]) }

func (o oid) short() string { return o.String()[:7] }

// blob is one side's contents as git sees them. The zero value is an absent
// file, whose oid is all zeros.
type blob struct {
	file  *File
	oid   oid
	size  int64
	data  []byte // nil when large
	large bool   // above MaxText: data is read again where needed
}

// load reads a side. The contents of a symbolic link are its target.
func load(f *File) (blob, error) {
	switch {
	case f == nil || !tracked(f):
		return blob{}, nil
	case isSymlink(f):
		return newBlob(f, []byte(f.Target)), nil
	case f.Open == nil && f.Size == 0:
		return newBlob(f, nil), nil
	case f.Size > MaxText:
		return loadLarge(f)
	}
	r, err := open(f)
	if err != nil {
		return blob{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	if err != nil {
		return blob{}, fmt.Errorf("read %q: %w", f.Path, err)
	}
	if len(data) > MaxText {
		return blob{}, fmt.Errorf("read %q: contents are longer than the size %d", f.Path, f.Size)
	}
	return newBlob(f, data), nil
}

func open(f *File) (io.ReadCloser, error) {
	if f.Open == nil {
		return nil, fmt.Errorf("read %q: no contents given", f.Path)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", f.Path, err)
	}
	return r, nil
}

func newBlob(f *File, data []byte) blob {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	b := blob{file: f, size: int64(len(data)), data: data}
	h.Sum(b.oid[:0])
	return b
}

func loadLarge(f *File) (blob, error) {
	r, err := open(f)
	if err != nil {
		return blob{}, err
	}
	defer r.Close()
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	n, err := io.Copy(h, r)
	if err != nil {
		return blob{}, fmt.Errorf("read %q: %w", f.Path, err)
	}
	if n != f.Size {
		return blob{}, fmt.Errorf("read %q: %d bytes where the size says %d", f.Path, n, f.Size)
	}
	b := blob{file: f, size: n, large: true}
	h.Sum(b.oid[:0])
	return b, nil
}

// reader returns the bytes from the beginning.
func (b *blob) reader() (io.ReadCloser, error) {
	if b.large {
		return open(b.file)
	}
	return io.NopCloser(bytes.NewReader(b.data)), nil
}

// binary reports whether the bytes are not shown line by line.
func (b *blob) binary() bool {
	return b.large || bytes.IndexByte(b.data, 0) >= 0
}
