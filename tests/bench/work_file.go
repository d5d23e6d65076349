package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// small creates, writes, closes and unlinks files, by several threads each in a
// directory of its own.
func small(n, threads int) func(*system, string) (time.Duration, error) {
	data := make([]byte, 1000)
	one := func(dir string) error {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for i := range n / threads {
			name := fmt.Sprintf("%s/%d", dir, i)
			if err := os.WriteFile(name, data, 0o644); err != nil {
				return err
			}
			if err := os.Remove(name); err != nil {
				return err
			}
		}
		return os.Remove(dir)
	}
	return func(_ *system, dir string) (time.Duration, error) {
		errs := make([]error, threads)
		var wg sync.WaitGroup
		for t := range threads {
			wg.Go(func() { errs[t] = one(fmt.Sprintf("%s/%d", work(dir), t)) })
		}
		wg.Wait()
		return 0, errors.Join(errs...)
	}
}

// replace writes temporary files, syncs and renames them, as editors do.
func replace(n int) func(*system, string) (time.Duration, error) {
	return func(_ *system, dir string) (time.Duration, error) {
		for i := range n {
			name := work(dir) + "/.tmp"
			if err := writeSynced(name, os.O_CREATE|os.O_TRUNC, 0); err != nil {
				return 0, err
			}
			if err := os.Rename(name, fmt.Sprintf("%s/f%d", work(dir), i%10)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
}

func writeSynced(name string, flags int, off int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY|flags, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 4096), off); err != nil {
		return err
	}
	return f.Sync()
}

// inPlace writes pages at random places of one file and syncs each, as
// databases do.
func inPlace(n int) func(*system, string) (time.Duration, error) {
	return func(_ *system, dir string) (time.Duration, error) {
		name := work(dir) + "/db"
		if err := os.WriteFile(name, make([]byte, 4<<20), 0o644); err != nil {
			return 0, err
		}
		r := rand.New(rand.NewPCG(1, 1))
		begin := time.Now()
		for range n {
			if err := writeSynced(name, 0, r.Int64N(1024)*4096); err != nil {
				return 0, err
			}
		}
		return time.Since(begin), nil
	}
}

// writeBlocks writes a file of the size; at random places if asked, after it
// was written once uncounted.
func writeBlocks(size int64, block int, random bool) func(*system, string) (time.Duration, error) {
	return func(_ *system, dir string) (time.Duration, error) {
		f, err := os.Create(work(dir) + "/blocks")
		if err != nil {
			return 0, err
		}
		defer f.Close()
		buf := make([]byte, block)
		n := size / int64(block)
		if random {
			if _, err := io.CopyN(f, zeros{}, size); err != nil {
				return 0, err
			}
		}
		r := rand.New(rand.NewPCG(2, 2))
		begin := time.Now()
		for i := range n {
			at := i
			if random {
				at = r.Int64N(n)
			}
			if err := transfer(unix.SYS_PWRITE64, f, buf, at*int64(block)); err != nil {
				return 0, err
			}
		}
		return time.Since(begin), nil
	}
}

// transfer reads or writes a block by the plain system call. Go's own way tells
// its scheduler of each call, and one that takes over 20 microseconds then
// costs the waking of a thread: what would be measured is Go's runtime.
func transfer(call uintptr, f *os.File, buf []byte, at int64) error {
	n, _, errno := unix.RawSyscall6(call, f.Fd(), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(at), 0, 0)
	switch {
	case errno != 0:
		return errno
	case int(n) != len(buf):
		return io.ErrUnexpectedEOF
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func big(dir string) string { return filepath.Join(dir, "big.bin") }

// readBlocks reads the large lower file once over, or as many blocks at random
// places as 256 MiB hold.
func (s *source) readBlocks(block int, random bool) func(*system, string) (time.Duration, error) {
	return func(_ *system, dir string) (time.Duration, error) {
		f, err := os.Open(big(dir))
		if err != nil {
			return 0, err
		}
		defer f.Close()
		buf := make([]byte, block)
		n := s.big / int64(block)
		if random {
			n = max(1, n/4)
		}
		r := rand.New(rand.NewPCG(3, 3))
		for i := range n {
			at := i
			if random {
				at = r.Int64N(n)
			}
			if err := transfer(unix.SYS_PREAD64, f, buf, at*int64(block)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
}

// pages takes what mmapRead read, so that the compiler keeps the loop.
var pages atomic.Uint32

// mmapRead touches every page of the large lower file.
func (s *source) mmapRead(_ *system, dir string) (time.Duration, error) {
	f, err := os.Open(big(dir))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	p, err := unix.Mmap(int(f.Fd()), 0, int(s.big), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(p)
	sum := byte(0)
	for i := 0; i < len(p); i += 4096 {
		sum += p[i]
	}
	pages.Store(uint32(sum))
	return 0, nil
}

// firstWrite changes one page of the large lower file. Opening it counts, since
// other systems copy then.
func firstWrite(_ *system, dir string) (time.Duration, error) {
	begin := time.Now()
	f, err := os.OpenFile(big(dir), os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	_, err = f.WriteAt(make([]byte, 4096), 8192)
	return time.Since(begin), err
}
