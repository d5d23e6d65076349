package model

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// workerEnv makes the test binary a worker in the directory that it names.
const workerEnv = "MODEL_WORKER_DIR"

// answer is what came of an operation.
type answer struct {
	Outcome string
	// Unsupported says that the file system has no such operation.
	Unsupported bool
}

func answerOf(outcome string, err error) answer {
	return answer{outcome, errors.Is(err, unix.EOPNOTSUPP)}
}

// actor does operations in a directory.
type actor interface {
	act(Op) (answer, error) // an error ends the run
	letGo() error           // of everything, so that the directory can be unmounted
	reopen() error          // after letGo
	close()
}

// process is an actor that is a process of its own.
type process struct {
	cmd *osexec.Cmd
	in  io.WriteCloser
	enc *gob.Encoder
	dec *gob.Decoder
}

// Requests to a worker beside operations.
type order struct {
	Op     Op
	LetGo  bool
	Reopen bool
}

// startProcess starts a worker in the directory.
func startProcess(t testing.TB, dir string) (*process, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return &process{cmd: cmd, in: in, enc: gob.NewEncoder(in), dec: gob.NewDecoder(out)}, nil
}

func (p *process) act(o Op) (answer, error) { return p.order(order{Op: o}) }

func (p *process) letGo() error {
	_, err := p.order(order{LetGo: true})
	return err
}

func (p *process) reopen() error {
	_, err := p.order(order{Reopen: true})
	return err
}

func (p *process) order(o order) (a answer, err error) {
	if err := p.enc.Encode(o); err != nil {
		return a, fmt.Errorf("order worker: %w", err)
	}
	if err := p.dec.Decode(&a); err != nil {
		return a, fmt.Errorf("the worker gives no answer: %w", err)
	}
	return a, nil
}

func (p *process) close() {
	p.in.Close()
	p.cmd.Wait()
}

// runWorker serves orders from in until its end and returns the exit status.
func runWorker(dir string, in io.Reader, out io.Writer) int {
	enc, dec := gob.NewEncoder(out), gob.NewDecoder(in)
	w, err := enterWorld(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	for {
		var o order
		if dec.Decode(&o) != nil {
			return 0
		}
		var a answer
		switch {
		case o.LetGo:
			w.Close()
			err = unix.Chdir("/")
		case o.Reopen:
			w, err = enterWorld(dir)
		default:
			a = answerOf(w.Do(o.Op))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			return 1
		}
		if enc.Encode(a) != nil {
			return 1
		}
	}
}

// enterWorld opens the directory and makes it the working directory.
func enterWorld(dir string) (*World, error) {
	w, err := NewWorld(dir)
	if err != nil {
		return nil, err
	}
	return w, unix.Fchdir(w.root)
}

// inProcess is an actor in the test's own process.
type inProcess struct {
	dir string
	*World
}

func (a *inProcess) act(o Op) (answer, error) { return answerOf(a.Do(o)), nil }
func (a *inProcess) close()                   { a.Close() }

func (a *inProcess) letGo() error {
	a.Close()
	return nil
}

func (a *inProcess) reopen() (err error) {
	a.World, err = NewWorld(a.dir)
	return err
}
