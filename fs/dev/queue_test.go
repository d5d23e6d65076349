package dev

import (
	"bytes"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newKernel returns a queue that runs, whose messages come out of the socket.
func newKernel(t *testing.T) (*Queue, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	q := newQueue(fds[0], true, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return q, fds[1]
}

// message reads one message, "" if none waits.
func message(t *testing.T, fd int) string {
	t.Helper()
	buf := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

func TestQueueOrderAndCoalescing(t *testing.T) {
	q, fd := newKernel(t)
	q.Entry(1, "a")
	q.Inode(7)
	q.Inode(8)
	q.Entry(1, "a")
	q.Inode(7) // must stay behind its entry
	q.Expire(1, "a")
	q.IncEpoch()
	q.Store(9, 4096, []byte("bytes"))
	go q.run()
	if err := q.Flush(); err != nil {
		t.Fatal(err)
	}
	want := [][]byte{
		appendInode(nil, 8), appendEntry(nil, 1, "a", 0), appendInode(nil, 7),
		appendEntry(nil, 1, "a", expireOnly), appendEpoch(nil),
		append(appendStore(nil, 9, 4096, 5), "bytes"...),
	}
	for i, w := range want {
		if got := message(t, fd); got != string(w) {
			t.Errorf("message %d: got %x, want %x", i, got, w)
		}
	}
	if got := message(t, fd); got != "" {
		t.Errorf("one more: %x", got)
	}
	q.close()
	if err := q.Flush(); !errors.Is(err, ErrClosed) {
		t.Errorf("flush after close: %v", err)
	}
	q.Inode(1) // is dropped
}

func TestQueueDoesNotGrowByRepetition(t *testing.T) {
	q, _ := newKernel(t)
	for i := range 100000 {
		q.Inode(uint64(i % 10))
	}
	if n := len(q.batch); n > 100 {
		t.Errorf("%d notes for 10 nodes", n)
	}
	for n, i := range q.at {
		if q.batch[i] != n {
			t.Errorf("index of %+v leads to %+v", n, q.batch[i])
		}
	}
}

func TestFlushWaitsForItsOwn(t *testing.T) {
	q, fd := newKernel(t)
	if err := q.Flush(); err != nil { // nothing queued, nobody writes
		t.Fatal(err)
	}
	q.Inode(1)
	flushed := make(chan error, 1)
	go func() { flushed <- q.Flush() }()
	select {
	case err := <-flushed:
		t.Fatalf("flush returned before its note was written: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	go q.run()
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	if message(t, fd) == "" {
		t.Error("flushed but not written")
	}
	q.close()
}

func TestQueueConcurrent(t *testing.T) {
	q, fd := newKernel(t)
	go q.run()
	go func() { // the kernel takes all
		buf := make([]byte, 1024)
		for {
			if n, err := unix.Read(fd, buf); err != nil || n == 0 {
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 500 {
				q.Inode(uint64(i*1000 + j))
				q.Entry(uint64(i), "name")
				if j%50 == 0 {
					if err := q.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	wg.Wait()
	if err := q.Flush(); err != nil {
		t.Error(err)
	}
	q.close()
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"inode", appendInode(nil, 0x8000000000000005),
			"28000000" + "02000000" + "0000000000000000" + "0500000000000080" + "0000000000000000" + "0000000000000000"},
		{"entry", appendEntry(nil, 1, "ab", 0),
			"23000000" + "03000000" + "0000000000000000" + "0100000000000000" + "02000000" + "00000000" + "616200"},
		{"expire", appendEntry(nil, 1, "", expireOnly),
			"21000000" + "03000000" + "0000000000000000" + "0100000000000000" + "00000000" + "01000000" + "00"},
		{"epoch", appendEpoch(nil), "10000000" + "08000000" + "0000000000000000"},
		{"store", appendStore(nil, 2, 1, 3),
			"2b000000" + "04000000" + "0000000000000000" + "0200000000000000" + "0100000000000000" + "03000000" + "00000000"},
	}
	for _, tt := range tests {
		want, err := hex.DecodeString(tt.want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tt.got, want) {
			t.Errorf("%s: got %x, want %x", tt.name, tt.got, want)
		}
	}
}
