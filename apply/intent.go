package apply

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// phase is how far an apply is known to have come.
type phase string

const (
	planned   phase = ""          // temporary names may exist
	staged    phase = "staged"    // commit may have begun
	committed phase = "committed" // commit is complete: point of no return
	done      phase = "done"
	reverted  phase = "reverted"
)

// line is one line of the intent file.
type line struct {
	Plan  *plan          `json:"plan,omitempty"`
	State phase          `json:"state,omitempty"`
	Made  map[int]made   `json:"made,omitempty"`  // with "staged"
	After []*Fingerprint `json:"after,omitempty"` // with "done": by op; null = absent
}

// intent is the record of one apply on disk.
type intent struct {
	id   uint64
	dir  string
	file *os.File // nil when read only
	o    *Options

	plan  *plan
	made  map[int]made
	state phase
	after []*Fingerprint
}

func (in *intent) pre(i int) string { return filepath.Join("pre", strconv.Itoa(i)) }

// createIntent makes the directory of the next apply and writes the plan.
func createIntent(o *Options, p *plan) (*intent, error) {
	ids, err := listIntents(o.Dir)
	if err != nil {
		return nil, err
	}
	id := uint64(1)
	if len(ids) > 0 {
		id = ids[len(ids)-1] + 1
	}
	in := &intent{id: id, dir: filepath.Join(o.Dir, strconv.FormatUint(id, 10)), o: o, plan: p, made: make(map[int]made)}
	if err := in.create(); err != nil {
		in.close()
		return nil, errors.Join(err, os.RemoveAll(in.dir))
	}
	return in, nil
}

// create makes the apply's directory with the plan in it, durable.
func (in *intent) create() error {
	if err := in.o.step("create intent directory"); err != nil {
		return err
	}
	err := os.MkdirAll(filepath.Join(in.dir, "pre"), 0o700)
	if err != nil {
		return fmt.Errorf("create apply directory: %w", err)
	}
	in.file, err = os.OpenFile(filepath.Join(in.dir, "intent"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("create intent file: %w", err)
	}
	if err := in.append(line{Plan: in.plan}); err != nil {
		return err
	}
	for _, d := range []string{in.dir, in.o.Dir, filepath.Dir(in.o.Dir)} {
		if err := syncPath(d); err != nil {
			return err
		}
	}
	return nil
}

// append adds a line; on return it is durable. After an error the file is as
// before, or the error wraps ErrStuck.
func (in *intent) append(l line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write intent: %w", err)
	}
	if err := in.o.step("write intent " + string(l.State)); err != nil {
		return err
	}
	st, err := in.file.Stat()
	if err != nil {
		return fmt.Errorf("write intent: %w", err)
	}
	if _, err = in.file.Write(append(data, '\n')); err == nil {
		err = in.file.Sync()
	}
	if err != nil {
		if cut := in.file.Truncate(st.Size()); cut != nil {
			return fmt.Errorf("%w: write intent: %w; %w", ErrStuck, err, cut)
		}
		return fmt.Errorf("write intent: %w", err)
	}
	if l.Plan == nil {
		in.state = l.State
	}
	return nil
}

func (in *intent) close() {
	if in.file != nil {
		in.file.Close()
		in.file = nil
	}
}

// listIntents returns the numbers of the applies below dir, ascending.
func listIntents(dir string) ([]uint64, error) {
	es, err := os.ReadDir(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list applies: %w", err)
	}
	var ids []uint64
	for _, e := range es {
		if id, err := strconv.ParseUint(e.Name(), 10, 64); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// readIntent reads an apply's record. One without a plan, because the crash was
// before it was written, comes back with a nil plan.
func readIntent(dir string, id uint64) (*intent, error) {
	in := &intent{id: id, dir: filepath.Join(dir, strconv.FormatUint(id, 10)), made: make(map[int]made)}
	f, err := os.Open(filepath.Join(in.dir, "intent"))
	if errors.Is(err, iofs.ErrNotExist) {
		return in, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read intent: %w", err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		data, err := r.ReadBytes('\n')
		if err != nil {
			return in, nil // end, or a line that a crash cut off
		}
		var l line
		if err := json.Unmarshal(data, &l); err != nil {
			return nil, fmt.Errorf("read intent of apply %d: %w", id, err)
		}
		if err := in.take(&l); err != nil {
			return nil, err
		}
	}
}

func (in *intent) take(l *line) error {
	switch {
	case l.Plan != nil && l.Plan.Version != 1:
		return fmt.Errorf("read intent of apply %d: version %d is newer than this program", in.id, l.Plan.Version)
	case l.Plan != nil:
		in.plan = l.Plan
		for i, o := range in.plan.Ops {
			o.index = i
		}
		return nil
	}
	in.state = l.State
	if l.Made != nil {
		in.made = l.Made
	}
	in.after = l.After
	return nil
}

// reopen makes a record that was read writable.
func (in *intent) reopen(o *Options) error {
	f, err := os.OpenFile(filepath.Join(in.dir, "intent"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("reopen intent: %w", err)
	}
	in.file, in.o = f, o
	// A cut-off line must not swallow the next one. An empty line in between
	// would not parse, so the cut is made good by cutting it off entirely.
	return in.trim()
}

func (in *intent) trim() error {
	data, err := os.ReadFile(filepath.Join(in.dir, "intent"))
	if err != nil {
		return fmt.Errorf("reopen intent: %w", err)
	}
	n := len(data)
	for n > 0 && data[n-1] != '\n' {
		n--
	}
	if n == len(data) {
		return nil
	}
	if err := in.file.Truncate(int64(n)); err != nil {
		return fmt.Errorf("reopen intent: %w", err)
	}
	return nil
}

func syncPath(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// step announces a system call that changes something.
func (o *Options) step(what string) error {
	if o.Step == nil {
		return nil
	}
	return o.Step(what)
}
