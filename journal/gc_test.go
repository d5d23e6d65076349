package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// number returns what the environment says, for longer runs.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// rendering is a state with the bytes of its files, independent of where they
// are stored.
type rendering struct {
	nodes, entries any
	contents       map[NodeID][]renderedExtent
}

type renderedExtent struct {
	off, len uint64
	kind     ExtentKind
	sum      [32]byte
}

// render reads all bytes of a state's files.
func render(t testing.TB, st *State, read func(Loc, []byte) error) rendering {
	t.Helper()
	n := normal(st)
	entries := map[NodeID]map[string]Entry{}
	for id, m := range n["entries"].(map[NodeID]map[string]Entry) {
		entries[id] = maps.Clone(m)
	}
	r := rendering{n["nodes"], entries, map[NodeID][]renderedExtent{}}
	for id, es := range n["contents"].(map[NodeID][]Extent) {
		for i := 0; i < len(es); {
			j := i + 1
			for j < len(es) && es[j].Kind == es[i].Kind && es[j].Off == es[j-1].End() {
				j++
			}
			r.contents[id] = append(r.contents[id], renderExtents(t, id, es[i:j], read))
			i = j
		}
	}
	return r
}

func renderExtents(t testing.TB, id NodeID, es []Extent, read func(Loc, []byte) error) renderedExtent {
	t.Helper()
	x := renderedExtent{off: es[0].Off, len: es[len(es)-1].End() - es[0].Off, kind: es[0].Kind}
	if x.kind != ExtentData {
		return x
	}
	h := sha256.New()
	for _, e := range es {
		b := make([]byte, e.Len)
		if err := read(e.Loc, b); err != nil {
			t.Fatalf("read node %x at %d: %v", id, e.Off, err)
		}
		h.Write(b)
	}
	h.Sum(x.sum[:0])
	return x
}

// keeper is the plain reference: a full copy of the tree at each point, with
// the bytes of all files.
type keeper struct {
	points map[Seq]rendering
}

// unpin removes all checkpoints.
func (k *keeper) unpin(t *testing.T, h *history) {
	t.Helper()
	for name := range h.st.Checkpoints {
		rec := &Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: name}}
		if _, err := h.store.Append(rec, nil); err != nil {
			t.Fatal(err)
		}
		h.st.Apply(rec)
		k.points[h.st.Seq] = render(t, h.st, h.store.ReadAt)
	}
}

// check compares all points that are left with the copies.
func (k *keeper) check(t *testing.T, s *Store, st *State) {
	t.Helper()
	cur := st.Clone()
	var recs []*Record
	if err := s.Records(0, 0, func(r *Record) error { recs = append(recs, r); return nil }); err != nil {
		t.Fatal(err)
	}
	for len(recs) > 0 {
		r := recs[len(recs)-1]
		k.same(t, s, cur, r.Seq)
		for _, c := range Invert([]*Record{r}) {
			cur.ApplyChange(&c)
		}
		recs = recs[:len(recs)-1]
	}
	k.same(t, s, cur, s.First()-1)
}

func (k *keeper) same(t *testing.T, s *Store, st *State, at Seq) {
	t.Helper()
	if got, want := render(t, st, s.ReadAt), k.points[at]; !reflect.DeepEqual(got, want) {
		t.Fatalf("point %d differs after a collection (history from %d)\n%s", at, s.First(), difference(got, want))
	}
}

func difference(got, want rendering) string {
	switch {
	case !reflect.DeepEqual(got.nodes, want.nodes):
		return fmt.Sprintf("nodes\n got %+v\nwant %+v", got.nodes, want.nodes)
	case !reflect.DeepEqual(got.entries, want.entries):
		return fmt.Sprintf("entries\n got %+v\nwant %+v", got.entries, want.entries)
	}
	return fmt.Sprintf("contents\n got %+v\nwant %+v", got.contents, want.contents)
}

// A random history with collections in it equals full copies of each point, at
// every point that is left; what is left is what was asked for.
//
//	JOURNAL_STEPS  records, 600
//	JOURNAL_SEED   plays this seed alone
func TestCollectModel(t *testing.T) {
	seed := uint64(number("JOURNAL_SEED", int(rand.Uint32())))
	t.Logf("JOURNAL_SEED=%d", seed)
	dir := t.TempDir()
	o := Options{SegmentSize: 4 << 10, PackSize: 8 << 10, Clock: tick()}
	s := mustCreate(t, dir, o)
	h := newHistory(seed, s)
	r := rand.New(rand.NewPCG(seed, 3))
	k := &keeper{points: map[Seq]rendering{0: render(t, NewState(), s.ReadAt)}}
	collections := 0
	for range number("JOURNAL_STEPS", 600) {
		h.next(t)
		k.points[h.st.Seq] = render(t, h.st, s.ReadAt)
		switch r.IntN(40) {
		case 0, 1:
			if err := s.Commit(); err != nil {
				t.Fatal(err)
			}
		case 2:
			mustClose(t, s)
			s = mustOpen(t, dir, o)
			sameFiles(t, "reopened", s.State(), h.st)
			h.store = s
		case 3:
			if r.IntN(4) > 0 {
				k.unpin(t, h)
			}
			collect(t, s, GCOptions{Retention: Retention{Records: 1 + r.Uint64N(80)}})
			collections++
			k.check(t, s, h.st)
		}
	}
	k.unpin(t, h)
	collect(t, s, GCOptions{Retention: Retention{Records: 1}})
	k.check(t, s, h.st)
	mustClose(t, s)
	verifyClean(t, dir)
	t.Logf("%d collections, history begins at %d of %d", collections, s.First(), h.st.Seq)
}

func collect(t testing.TB, s *Store, o GCOptions) *GCReport {
	t.Helper()
	r, err := s.GC(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// longJournal returns a journal of several segments and packs.
func longJournal(t *testing.T, o Options) (dir string, s *Store, h *history) {
	t.Helper()
	return journalOf(t, 300, o)
}

func journalOf(t *testing.T, n int, o Options) (dir string, s *Store, h *history) {
	t.Helper()
	dir = t.TempDir()
	o.SegmentSize, o.PackSize, o.Clock = 4<<10, 8<<10, tick()
	s = mustCreate(t, dir, o)
	h = newHistory(77, s)
	for range n {
		h.next(t)
	}
	return dir, s, h
}

func TestCollectTrims(t *testing.T) {
	dir, s, h := longJournal(t, Options{})
	if _, err := s.Append(&Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: "c0"}}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		s.Append(&Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: fmt.Sprintf("c%d", i)}}, nil)
	}
	logBefore, dataBefore, _ := s.Sizes()
	plan := collect(t, s, GCOptions{Retention: Retention{Records: 50}, DryRun: true})
	if s.First() != 1 || plan.Dropped == 0 {
		t.Fatalf("dry run: %+v, history begins at %d", plan, s.First())
	}
	if l, d, _ := s.Sizes(); l != logBefore || d != dataBefore {
		t.Errorf("a dry run changed the files: %d, %d bytes", l, d)
	}
	rep := collect(t, s, GCOptions{Retention: Retention{Records: 50}})
	if rep.First != plan.First || rep.Dropped != plan.Dropped || rep.Moved != plan.Moved {
		t.Errorf("dry run said %+v, done was %+v", plan, rep)
	}
	if first := s.First(); first == 1 || first > s.Head()-49 || first != rep.First {
		t.Errorf("history begins at %d of %d", first, s.Head())
	}
	// What is live of the log is data now.
	if l, d, _ := s.Sizes(); l >= logBefore/2 || l+d > (logBefore+dataBefore)/2 {
		t.Errorf("log %d of %d bytes, data %d of %d", l, logBefore, d, dataBefore)
	}
	wantTrimmed(t, s)
	verifyClean(t, dir) // beside the open journal
	if r1, err := s.Record1(); err != nil || r1 == nil || r1.Seq != 1 {
		t.Errorf("record 1: %v, %v", r1, err)
	}
	mustClose(t, s)
	verifyClean(t, dir)
	s = mustOpen(t, dir, Options{})
	sameFiles(t, "reopened", s.State(), h.st)
	wantTrimmed(t, s)
	if r1, err := s.Record1(); err != nil || r1 == nil || r1.Seq != 1 {
		t.Errorf("record 1: %v, %v", r1, err)
	}
	mustClose(t, s)
	if _, err := Rebuild(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	verifyClean(t, dir)
	sameFiles(t, "rebuilt", mustOpen(t, dir, Options{}).State(), h.st)
}

func wantTrimmed(t *testing.T, s *Store) {
	t.Helper()
	nothing := func(*Record) error { return nil }
	var e *TrimmedError
	if err := s.Records(1, 0, nothing); !errors.Is(err, ErrTrimmed) || !errors.As(err, &e) || e.First != s.First() {
		t.Errorf("records from 1: %v", err)
	}
	if err := s.RecordsDesc(1, 0, nothing); !errors.Is(err, ErrTrimmed) {
		t.Errorf("records down to 1: %v", err)
	}
	if err := s.Records(0, 0, nothing); err != nil {
		t.Errorf("all records: %v", err)
	}
	if err := s.RecordsDesc(0, 0, nothing); err != nil {
		t.Errorf("all records backwards: %v", err)
	}
	if _, err := s.Hold(s.First() - 2); !errors.Is(err, ErrTrimmed) {
		t.Errorf("hold: %v", err)
	}
}

// Checkpoints, pins and holds keep what they need.
func TestCollectPins(t *testing.T) {
	_, s, _ := longJournal(t, Options{})
	for i := range 4 {
		s.Append(&Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: fmt.Sprintf("c%d", i)}}, nil)
	}
	keepOne := Retention{Records: 1}
	release, err := s.Hold(100)
	if err != nil {
		t.Fatal(err)
	}
	if r := collect(t, s, GCOptions{Retention: keepOne}); r.First > 101 || r.HeldBy == "" {
		t.Errorf("with a hold: %+v", r)
	}
	release()
	if r := collect(t, s, GCOptions{Retention: keepOne, Pins: []Pin{{150, "fork x"}}}); r.First > 151 || r.HeldBy != "fork x" {
		t.Errorf("with a pin: %+v", r)
	}
	if _, err := s.Append(&Record{Op: OpCheckpoint, Note: &Note{Checkpoint: "mine", Point: 200}}, nil); err != nil {
		t.Fatal(err)
	}
	if r := collect(t, s, GCOptions{Retention: keepOne}); r.First > 201 || r.HeldBy != `checkpoint "mine"` {
		t.Errorf("with a checkpoint: %+v", r)
	}
	s.Append(&Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: "mine"}}, nil)
	if r := collect(t, s, GCOptions{Retention: keepOne}); r.First < 290 {
		t.Errorf("with nothing: %+v", r)
	}
}

// History is bounded by age and by bytes as well.
func TestCollectBounds(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for name, tc := range map[string]struct {
		r     Retention
		later time.Duration
		all   bool
	}{
		"young":        {Retention{Age: time.Hour}, time.Minute, false},
		"old":          {Retention{Age: time.Hour}, 2 * time.Hour, true},
		"few bytes":    {Retention{Bytes: 1 << 40}, 0, false},
		"many bytes":   {Retention{Bytes: 1}, 0, true},
		"no limits":    {Retention{}, time.Hour, false},
		"enough space": {Retention{Records: 1 << 40}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := now
			s := mustCreate(t, t.TempDir(), Options{SegmentSize: 4 << 10, Clock: func() time.Time { return clock }})
			h := newHistory(5, s)
			for range 200 {
				rec := h.next(t)
				if rec.Op == OpCheckpoint {
					s.Append(&Record{Op: OpUncheckpoint, Note: rec.Note}, nil)
				}
			}
			clock = clock.Add(tc.later)
			r := collect(t, s, GCOptions{Retention: tc.r})
			if all := r.First == s.Head()+1; all != tc.all || !tc.all && r.First != 1 {
				t.Errorf("%+v, head %d", r, s.Head())
			}
		})
	}
}

// A collection works wherever the head stands between two records whose
// position the database keeps, with and without records behind what goes: the
// record behind the head, which a mark may be due for, is not looked for.
func TestCollectBetweenMarks(t *testing.T) {
	for _, head := range []int{markEvery - 1, markEvery, markEvery + 1, 2 * markEvery, 2*markEvery + 1} {
		for _, keep := range []uint64{1, markEvery / 2, markEvery} {
			t.Run(fmt.Sprintf("%d of %d", keep, head), func(t *testing.T) {
				_, s, h := journalOf(t, 0, Options{})
				for s.Head() < Seq(head) {
					rec := h.next(t)
					if rec.Op != OpCheckpoint {
						continue
					}
					rec = &Record{Op: OpUncheckpoint, Note: rec.Note}
					if _, err := s.Append(rec, nil); err != nil {
						t.Fatal(err)
					}
					h.st.Apply(rec)
				}
				if s.Head() != Seq(head) {
					t.Fatalf("head is %d", s.Head())
				}
				collect(t, s, GCOptions{Retention: Retention{Records: keep}})
				next := s.First()
				if err := s.Records(0, 0, func(r *Record) error {
					if r.Seq != next {
						t.Errorf("record %d instead of %d", r.Seq, next)
					}
					next++
					return nil
				}); err != nil || next != Seq(head)+1 {
					t.Errorf("records up to %d of %d: %v", next-1, head, err)
				}
				collect(t, s, GCOptions{Retention: Retention{Records: 1}})
				h.next(t)
				mustClose(t, s)
				verifyClean(t, s.dir)
			})
		}
	}
}

// Only one collection runs at a time, and work goes on beside it.
func TestCollectTwice(t *testing.T) {
	_, s, h := longJournal(t, Options{})
	var second error
	r := collect(t, s, GCOptions{Retention: Retention{Records: 10}, Progress: func(GCProgress) {
		if second == nil {
			_, second = s.GC(context.Background(), GCOptions{})
		}
		h.next(t)
	}})
	if !errors.Is(second, ErrCollecting) {
		t.Errorf("a second collection: %v", second)
	}
	if r.Dropped == 0 {
		t.Errorf("%+v", r)
	}
	mustClose(t, s)
	verifyClean(t, s.dir)
	sameFiles(t, "reopened", mustOpen(t, s.dir, Options{}).State(), h.st)
}

// Who reads while a collection takes another database into use gets the record,
// or is told that it was trimmed.
func TestReadBesideCollection(t *testing.T) {
	var s *Store
	var readers sync.WaitGroup
	collecting := false
	read := func(seq Seq) {
		got := Seq(0)
		err := s.Records(seq, seq, func(r *Record) error {
			got = r.Seq
			return nil
		})
		if err != nil && !errors.Is(err, ErrTrimmed) || err == nil && got != seq {
			t.Errorf("record %d: got %d, %v", seq, got, err)
		}
	}
	_, s, _ = longJournal(t, Options{Inject: func(kind string, _ int) *Fault {
		if kind == KindRename && collecting {
			for seq := s.First(); seq <= s.Head(); seq += 5 {
				readers.Go(func() { read(seq) })
			}
			time.Sleep(20 * time.Millisecond) // for them to come to where they wait
		}
		return nil
	}})
	collecting = true
	collect(t, s, GCOptions{Retention: Retention{Records: 1}})
	collecting = false
	readers.Wait()
	if s.First()%markEvery == 1 {
		t.Fatalf("history begins at record %d, which has a mark", s.First())
	}
	mustClose(t, s)
	verifyClean(t, s.dir)
}

// What only an open descriptor leads to stays while it is open.
func TestCollectKeepsOpenNodes(t *testing.T) {
	_, s, h := longJournal(t, Options{})
	uncheckpoint := func() {
		for i := range 4 {
			s.Append(&Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: fmt.Sprintf("c%d", i)}}, nil)
		}
	}
	id := h.st.NextNode
	data := bytes.Repeat([]byte("open"), 100)
	appendWrite(t, s, h, id, data)
	n := h.st.Nodes[id].Clone()
	n.Attr.Nlink = 0
	rec := &Record{Op: OpUnlink, Changes: []Change{{Node: &NodeChange{ID: id, Before: h.st.Nodes[id], After: n}}}}
	if _, err := s.Append(rec, nil); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		h.next(t)
	}
	uncheckpoint()
	collect(t, s, GCOptions{Retention: Retention{Records: 1}, Open: func() []NodeID { return []NodeID{id} }})
	if _, c, err := s.LookupNode(id); err != nil || c == nil || !bytes.Equal(readContent(t, s, c), data) {
		t.Fatalf("the content of an open file is gone: %v", err)
	}
	for range 50 {
		h.next(t)
	}
	uncheckpoint()
	collect(t, s, GCOptions{Retention: Retention{Records: 1}})
	if n, _, err := s.LookupNode(id); err != nil || n != nil {
		t.Fatalf("a file that nobody has is still there: %+v, %v", n, err)
	}
}

func appendWrite(t *testing.T, s *Store, h *history, id NodeID, data []byte) {
	t.Helper()
	n := &Node{Own: true, OwnContent: true, Attr: Attr{Mode: 0o100644, Nlink: 1, Size: uint64(len(data))}}
	rec := &Record{Op: OpWrite, Changes: []Change{
		{Node: &NodeChange{ID: id, After: n}},
		{Content: &ContentChange{ID: id, Len: n.Attr.Size, After: []Extent{{Len: n.Attr.Size, Kind: ExtentData}}}},
	}}
	if _, err := s.Append(rec, data); err != nil {
		t.Fatal(err)
	}
	h.st.Apply(rec)
}

func readContent(t *testing.T, s *Store, c *Content) []byte {
	t.Helper()
	var out []byte
	for _, e := range c.Range(0, maxOffset) {
		b := make([]byte, e.Len)
		if err := s.ReadAt(e.Loc, b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// A collection that fails at any change to the disk, for want of space too,
// has changed nothing: all points are there as before, and the next one works.
func TestCollectFails(t *testing.T) {
	step := number("JOURNAL_CRASH_STEP", 4)
	for k := 1 + rand.IntN(step); ; k += step {
		n, armed := 0, false
		_, s, h := journalOf(t, 120, Options{Inject: func(string, int) *Fault {
			if !armed {
				return nil
			}
			if n++; n != k {
				return nil
			}
			return &Fault{Err: errNoSpace}
		}})
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		first := s.First()
		armed = true
		_, err := s.GC(context.Background(), GCOptions{Retention: Retention{Records: 40}})
		armed = false
		if n < k {
			if err != nil || k <= step {
				t.Fatalf("after %d changes: %v", n, err)
			}
			return
		}
		if err != nil && s.First() == first {
			for _, pattern := range []string{"objects/*.keep", "objects/*.tmp", "wal/*.tmp", "wal/*.base", "journal.db.new"} {
				if left, _ := filepath.Glob(filepath.Join(s.dir, pattern)); len(left) > 0 {
					t.Errorf("failed at %d: left behind %v", k, left)
				}
			}
			if err := s.Records(first, 0, func(*Record) error { return nil }); err != nil {
				t.Errorf("failed at %d: %v", k, err)
			}
		}
		if s.syncErr == nil {
			collect(t, s, GCOptions{Retention: Retention{Records: 40}})
		}
		s.Close()
		verifyClean(t, s.dir)
		sameFiles(t, fmt.Sprintf("failed at %d", k), mustOpen(t, s.dir, Options{}).State(), h.st)
	}
}

var errNoSpace = fmt.Errorf("injected: %w", unix.ENOSPC)
