package diffview

import (
	"bufio"
	"compress/zlib"
	"fmt"
	"io"
)

const (
	base85    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	lineBytes = 52 // bytes that one line of a binary patch holds
)

// writeBinary writes both directions of a binary change as literals.
func (p *printer) writeBinary(d *delta) error {
	p.line("GIT binary patch")
	for _, b := range []*blob{&d.new, &d.old} {
		if err := p.writeLiteral(b); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) writeLiteral(b *blob) error {
	p.line(fmt.Sprintf("literal %d", b.size))
	r, err := b.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	enc := &base85Writer{w: p.w}
	z := zlib.NewWriter(enc)
	n, err := io.Copy(z, r)
	if err != nil {
		return fmt.Errorf("write binary patch: %w", err)
	}
	if n != b.size {
		return fmt.Errorf("write binary patch: contents changed while they were read")
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write binary patch: %w", err)
	}
	if err := enc.flush(); err != nil {
		return fmt.Errorf("write binary patch: %w", err)
	}
	p.line("")
	return nil
}

// base85Writer writes lines of git's base 85: a length letter, then five
// characters for each four bytes, the last of which are filled up by zeros.
type base85Writer struct {
	w   *bufio.Writer
	buf [lineBytes]byte
	n   int
}

// Write implements io.Writer.
func (e *base85Writer) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := copy(e.buf[e.n:], p)
		e.n, p = e.n+n, p[n:]
		if e.n == lineBytes {
			if err := e.flush(); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// flush writes what is held as one line.
func (e *base85Writer) flush() error {
	if e.n == 0 {
		return nil
	}
	out := make([]byte, 0, 2+lineBytes/4*5)
	if e.n <= 26 {
		out = append(out, byte('A'+e.n-1))
	} else {
		out = append(out, byte('a'+e.n-27))
	}
	clear(e.buf[e.n:])
	for i := 0; i < e.n; i += 4 {
		out = appendBase85(out, e.buf[i:i+4])
	}
	e.n = 0
	_, err := e.w.Write(append(out, '\n'))
	return err
}

func appendBase85(out, four []byte) []byte {
	v := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
	var five [5]byte
	for i := 4; i >= 0; i-- {
		five[i] = base85[v%85]
		v /= 85
	}
	return append(out, five[:]...)
}
