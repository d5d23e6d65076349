package dev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Conn is a mount that is being served. Its methods are safe for concurrent
// use.
type Conn struct {
	m     *mounted
	caps  uint64
	init  []byte
	loop  loop
	queue *Queue
	done  chan struct{}
	deg   []string
}

// Mount mounts the filesystem and serves it. On return the mount is usable.
// It goes on until it is unmounted, by Unmount or from outside; Done tells.
func Mount(cfg Config, fsys fuse.RawFileSystem) (*Conn, error) {
	c, err := serve(cfg, fsys)
	if err == nil || !errors.Is(err, unix.ECONNREFUSED) || cfg.NoIDMap {
		return c, err
	}
	// The kernel refused what INIT agreed on. The id map is the one thing that
	// a kernel has a say in there.
	cfg.NoIDMap = true
	c, err = serve(cfg, fsys)
	if err == nil {
		c.deg = append(c.deg, noIDMap)
	}
	return c, err
}

const noIDMap = "id-mapped binds of the mount are not possible (needs Linux 6.12): sandboxes see translated owners"

func serve(cfg Config, fsys fuse.RawFileSystem) (*Conn, error) {
	m, err := mount(&cfg)
	if err != nil {
		return nil, err
	}
	c := &Conn{m: m, done: make(chan struct{}), deg: m.degraded}
	if err := c.open(&cfg, fsys); err != nil {
		_ = Unmount(m.dir, true)
		return nil, fmt.Errorf("mount %q: %w", m.dir, err)
	}
	return c, nil
}

// open answers INIT, starts the loop and waits until the mount answers. On an
// error the descriptor is closed or will be when the mount is gone.
func (c *Conn) open(cfg *Config, fsys fuse.RawFileSystem) error {
	fd := c.m.fd
	idmap := !cfg.NoIDMap && c.m.direct && c.m.initial
	srv := newServer(fsys, idmap, cfg.Logger)
	err := unix.SetNonblock(fd, false)
	if err == nil {
		c.init, c.caps, err = handshake(fd, srv)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	c.note(idmap)
	c.queue = newQueue(fd, knowsEpochs(c.init), cfg.Logger)
	if cfg.Prepare != nil {
		cfg.Prepare(c.queue)
	}
	c.loop = loop{fd: fd, srv: srv, log: cfg.Logger}
	if err := c.loop.start(); err != nil {
		unix.Close(fd)
		return err
	}
	go c.queue.run()
	go c.end()
	return c.usable()
}

// note lists what the kernel lacks.
func (c *Conn) note(idmap bool) {
	for _, n := range needed {
		if c.caps&n.bit == 0 {
			c.deg = append(c.deg, n.text)
		}
	}
	if idmap && c.caps&fuse.CAP_ALLOW_IDMAP == 0 {
		c.deg = append(c.deg, noIDMap)
	}
	if !knowsEpochs(c.init) {
		c.deg = append(c.deg, noEpochs)
	}
}

const noEpochs = "the kernel can't be told to look up all names again (needs Linux 6.16): after very many edits on the host at once, " +
	"new names may stay unseen where they were looked for in vain before"

// knowsEpochs reads the kernel's minor version from its INIT request (struct
// fuse_init_in: minor at 4): FUSE_NOTIFY_INC_EPOCH came with 7.44.
func knowsEpochs(init []byte) bool {
	return len(init) >= inHeader+8 && binary.NativeEndian.Uint32(init[inHeader+4:]) >= 44
}

// end closes the descriptor after the last request was answered.
func (c *Conn) end() {
	c.loop.all.Wait()
	c.queue.close()
	unix.Close(c.m.fd)
	close(c.done)
}

// usableTimeout is how long the first request may take.
const usableTimeout = 10 * time.Second

// usable asks the mount for statfs: a kernel that did not accept the answer to
// INIT says ECONNREFUSED.
func (c *Conn) usable() error {
	answer := make(chan error, 1)
	go func() {
		var st unix.Statfs_t
		err := unix.Statfs(c.m.dir, &st)
		// Until the root's attributes were asked for the kernel takes it for
		// root's, and would refuse its owner a chmod.
		var root unix.Stat_t
		answer <- errors.Join(err, unix.Stat(c.m.dir, &root))
	}()
	select {
	case err := <-answer:
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOTCONN) {
			return fmt.Errorf("probe mount: %w", err)
		}
		return nil
	case <-time.After(usableTimeout):
		return errors.New("probe mount: no answer")
	}
}

// Dir returns the mount point without symbolic links.
func (c *Conn) Dir() string { return c.m.dir }

// Dev returns st_dev of the files in the mount.
func (c *Conn) Dev() uint64 { return c.m.entry.Dev }

// IDMap reports whether binds of the mount can be id-mapped. Requests then
// carry no uid and gid but where they create something.
func (c *Conn) IDMap() bool { return c.caps&fuse.CAP_ALLOW_IDMAP != 0 }

// InitRequest returns the bytes of the kernel's INIT request, from which a
// process that takes the descriptor over learns what was agreed on.
func (c *Conn) InitRequest() []byte { return append([]byte(nil), c.init...) }

// Queue returns the queue of notifications to the kernel.
func (c *Conn) Queue() *Queue { return c.queue }

// Degraded lists what works worse than it could here, and why.
func (c *Conn) Degraded() []string { return append([]string(nil), c.deg...) }

// Done is closed when the mount is gone and all its requests are answered.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Unmount unmounts and waits for the end; a lazy unmount does not wait, as
// others may go on using the mount. ErrBusy means that it is in use and is
// still mounted.
func (c *Conn) Unmount(lazy bool) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	e, err := top(c.m.dir)
	if err != nil {
		return err
	}
	if e == nil || e.Dev != c.m.entry.Dev {
		return fmt.Errorf("unmount %q: %w: another mount is in its place", c.m.dir, ErrNotMounted)
	}
	if err := Unmount(c.m.dir, lazy); err != nil {
		return err
	}
	if !lazy {
		<-c.done
	}
	return nil
}

var _ server = (*fuse.ProtocolServer)(nil)
