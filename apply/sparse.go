package apply

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const holeBlock = 4096

var zeros [64 << 10]byte

// sparseWriter writes into a file that has its final size and is all hole: it
// seeks over blocks that are zero. What it gets is also added to a digest.
type sparseWriter struct {
	f   *os.File
	sum hash.Hash // may be nil
	off int64
}

// Write implements io.Writer.
func (w *sparseWriter) Write(p []byte) (int, error) {
	if w.sum != nil {
		w.sum.Write(p)
	}
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), holeBlock-int(w.off%holeBlock))
		k := n
		if !isZero(p[:n]) {
			for k < len(p) && !isZero(p[k:min(len(p), k+holeBlock)]) {
				k = min(len(p), k+holeBlock)
			}
			if _, err := w.f.WriteAt(p[:k], w.off); err != nil {
				return 0, err
			}
		}
		w.off += int64(k)
		p = p[k:]
	}
	return total, nil
}

// skip passes over a hole.
func (w *sparseWriter) skip(n int64) {
	w.off += n
	for n > 0 && w.sum != nil {
		k := min(n, int64(len(zeros)))
		w.sum.Write(zeros[:k])
		n -= k
	}
}

func isZero(p []byte) bool { return bytes.Equal(p, zeros[:len(p)]) }

// copyFile makes an independent copy of a file: a reflink where the file system
// can, else its data without its holes.
func copyFile(dst, src *os.File) error {
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil {
		return nil
	}
	st, err := src.Stat()
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if err := dst.Truncate(st.Size()); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	w := &sparseWriter{f: dst}
	for off := int64(0); off < st.Size(); {
		start, end, err := nextData(src, off, st.Size())
		if err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		w.off = start
		if _, err := io.Copy(w, io.NewSectionReader(src, start, end-start)); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		off = end
	}
	return nil
}

// nextData returns the first range of data at or behind off; where the file
// system does not tell, everything is data.
func nextData(f *os.File, off, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP):
		return off, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
	if err != nil {
		return 0, 0, err
	}
	return start, min(end, size), nil
}
