package apply

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// runner carries out one plan.
type runner struct {
	ctx     context.Context
	host    *host
	o       *Options
	in      *intent
	res     *Result
	foreign map[uint32]bool // sources whose files can't be renamed into the state directory
	at      string          // path of the op that is being carried out
}

// stage makes everything under temporary names and the pre-images that have to
// be copied. It does not touch any existing file.
func (r *runner) stage() error {
	dirs := make(map[key]bool)
	for i, o := range r.in.plan.Ops {
		if err := r.ctx.Err(); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		r.at = string(o.Path)
		if err := r.stageOp(i, o); err != nil {
			return err
		}
		if o.Verb == put || o.Verb == mkdir {
			dirs[key{o.Source, string(o.TempDir), false}] = true
		}
	}
	for k := range dirs {
		if err := r.syncDir(k.source, k.path); err != nil {
			return err
		}
	}
	if err := syncPath(r.in.dir + "/pre"); err != nil {
		return err
	}
	return r.in.append(line{State: staged, Made: r.in.made})
}

func (r *runner) stageOp(i int, o *op) error {
	if (o.Verb == put || o.Verb == remove) && o.Old != nil && o.Old.kind() == unix.S_IFREG {
		copied, err := r.preImage(i, o)
		if err != nil {
			return err
		}
		r.in.made[i] = made{Copied: copied}
	}
	if o.Verb != put && o.Verb != mkdir {
		return nil
	}
	dir, err := r.host.dir(o.Source, string(o.TempDir))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := r.o.step("stage " + o.Temp); err != nil {
		return err
	}
	m, err := r.make(o, place{dir, o.Temp})
	if err != nil {
		return fmt.Errorf("stage %q: %w", o.Path, err)
	}
	m.Copied = r.in.made[i].Copied
	r.in.made[i] = m
	return nil
}

// make creates the op's file, link or directory under its temporary name.
func (r *runner) make(o *op, at place) (made, error) {
	var sum []byte
	switch o.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		if err := unix.Symlinkat(string(o.Target), at.dir, at.name); err != nil {
			return made{}, fmt.Errorf("create link: %w", err)
		}
	case unix.S_IFDIR:
		if err := unix.Mkdirat(at.dir, at.name, 0o700); err != nil {
			return made{}, fmt.Errorf("create directory: %w", err)
		}
	default:
		var err error
		if sum, err = r.makeFile(o, at); err != nil {
			return made{}, err
		}
	}
	fd, err := openBelow(at.dir, at.name, unix.O_PATH)
	if err != nil {
		return made{}, fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	if err := r.dress(o, at, fd); err != nil {
		return made{}, err
	}
	f, err := factOf(fd)
	if err != nil {
		return made{}, err
	}
	return made{Ino: f.Ino, Digest: sum}, nil
}

// makeFile writes a new file and returns the digest of its contents.
func (r *runner) makeFile(o *op, at place) ([]byte, error) {
	src, size, err := r.source(o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_WRONLY | unix.O_CLOEXEC, Mode: 0o600, Resolve: resolve}
	fd, err := unix.Openat2(at.dir, at.name, &how)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	f := os.NewFile(uintptr(fd), at.name)
	defer f.Close()
	sum := sha256.New()
	if err := r.fill(f, src, size, sum); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	return sum.Sum(nil), nil
}

// source returns the contents that the op's file gets. Without contents of the
// item's own they are those of the host's file.
func (r *runner) source(o *op) (io.ReadCloser, int64, error) {
	w := &o.item.Want
	switch {
	case w.Open != nil:
		src, err := w.Open()
		if err != nil {
			return nil, 0, fmt.Errorf("open in the workspace: %w", err)
		}
		return src, w.Size, nil
	case o.Old != nil && o.Old.kind() == unix.S_IFREG && o.Old.Size == w.Size:
		src, err := r.host.openRegular(o.Source, string(o.Now), o.Old)
		return src, w.Size, err
	case w.Size == 0:
		return io.NopCloser(eof{}), 0, nil
	}
	return nil, 0, errors.New("no contents given")
}

type eof struct{}

// Read implements io.Reader.
func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// fill writes the contents, leaving holes where the source has them or a whole
// block is zero.
func (r *runner) fill(f *os.File, src io.Reader, size int64, sum hash.Hash) error {
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("set size: %w", err)
	}
	w := &sparseWriter{f: f, sum: sum}
	if s, ok := src.(Sparse); ok {
		return r.fillSparse(w, s, size)
	}
	n, err := io.CopyBuffer(w, &guarded{r, io.LimitReader(src, size+1)}, make([]byte, 1<<20))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if n != size {
		return fmt.Errorf("write: contents have another size than the reviewed %d bytes", size)
	}
	return nil
}

func (r *runner) fillSparse(w *sparseWriter, s Sparse, size int64) error {
	for off := int64(0); off < size; {
		start, end, err := s.NextData(off)
		if err != nil {
			return fmt.Errorf("find data: %w", err)
		}
		if start >= end || start >= size {
			start, end = size, size
		}
		if start < off {
			return errors.New("find data: ranges go backwards")
		}
		w.skip(start - off)
		end = min(end, size)
		n, err := io.CopyBuffer(w, &guarded{r, io.NewSectionReader(s, start, end-start)}, make([]byte, 1<<20))
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if n != end-start {
			return errors.New("write: contents ended early")
		}
		off = end
	}
	return nil
}

// guarded is a reader that ends with the context and hides everything else
// that its reader can do.
type guarded struct {
	r *runner
	s io.Reader
}

// Read implements io.Reader.
func (g *guarded) Read(p []byte) (int, error) {
	if err := g.r.ctx.Err(); err != nil {
		return 0, err
	}
	return g.s.Read(p)
}
