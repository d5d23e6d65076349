package workspace

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// pointKind says how a point was written.
type pointKind uint8

const (
	pointSeq   pointKind = iota // a record's number
	pointExec                   // before a command
	pointTime                   // a time, or a duration ago
	pointName                   // a checkpoint
	pointGroup                  // before a group of commands
)

// point is a parsed reference to a moment of the history.
type point struct {
	kind pointKind
	seq  journal.Seq
	exec journal.ExecID
	time time.Time
	name string
}

// timeLayouts are the ways to write a time: RFC 3339, and shorter ones in the
// local zone.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// parsePoint reads a point: a number, exec:N, group:N, a time, a duration ago,
// or the name of a checkpoint.
func parsePoint(s string, now time.Time) (point, error) {
	if s == "" || strings.ContainsRune(s, 0) {
		return point{}, Fail(CodeUsage, "read point %q: it is empty", s)
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return point{kind: pointSeq, seq: journal.Seq(n)}, nil
	}
	if rest, ok := strings.CutPrefix(s, "exec:"); ok {
		n, err := strconv.ParseUint(rest, 10, 64)
		if err != nil || n == 0 {
			return point{}, Fail(CodeUsage, "read point %q: a command is written exec:N", s)
		}
		return point{kind: pointExec, exec: journal.ExecID(n)}, nil
	}
	if name, ok := strings.CutPrefix(s, "group:"); ok && name != "" && !strings.Contains(name, ":") {
		return point{kind: pointGroup, name: name}, nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return point{kind: pointTime, time: t}, nil
		}
	}
	if d, err := time.ParseDuration(strings.TrimSuffix(s, " ago")); err == nil && d >= 0 {
		return point{kind: pointTime, time: now.Add(-d)}, nil
	}
	return point{kind: pointName, name: s}, nil
}

// LooksLikePoint reports whether an argument is written like a point that is
// not a checkpoint's name.
func LooksLikePoint(s string) bool {
	p, err := parsePoint(s, time.Now())
	return err == nil && p.kind != pointName
}

// resolve returns the record that a point stands behind: the state at the
// point is the one after that record.
func (w *Workspace) resolve(s string) (journal.Seq, error) {
	p, err := parsePoint(s, time.Now())
	if err != nil {
		return 0, err
	}
	switch p.kind {
	case pointSeq:
		if head := w.store.Head(); p.seq > head {
			return 0, Fail(CodeNothing, "find point %s: the last record is %d", s, head)
		}
		return p.seq, nil
	case pointExec:
		x, err := w.exec(p.exec)
		if err != nil {
			return 0, err
		}
		return x.First - 1, nil
	case pointGroup:
		g, err := w.group(p.name)
		if err != nil {
			return 0, err
		}
		return g.begin - 1, nil
	case pointTime:
		return w.atTime(journal.Timespec(p.time.UnixNano()))
	}
	return w.checkpoint(p.name)
}

// exec returns what the journal knows of a command.
func (w *Workspace) exec(id journal.ExecID) (*journal.Exec, error) {
	var x *journal.Exec
	var next journal.ExecID
	if err := w.read(func(s *journal.State) { x, next = s.Execs[id], s.NextExec }); err != nil {
		return nil, err
	}
	if x == nil && id != 0 && id < next {
		return nil, Fail(CodeNothing, "find command: the history of exec:%d was dropped by gc", id).Hinted("`winkfs log` shows what is left")
	}
	if x == nil {
		return nil, Fail(CodeNothing, "find command: there is no exec:%d", id).Hinted("`winkfs log --op exec_begin` lists the commands")
	}
	return x, nil
}

func (w *Workspace) checkpoint(name string) (journal.Seq, error) {
	var seq journal.Seq
	known := false
	if err := w.read(func(s *journal.State) { seq, known = s.Checkpoints[name] }); err != nil {
		return 0, err
	}
	if !known {
		return 0, Fail(CodeNothing, "find point: there is no checkpoint %q", name).
			Hinted("a point is a record's number, exec:N, group:N, a checkpoint (`winkfs checkpoint --list`), a time or a duration ago")
	}
	return seq, nil
}

var errFound = errors.New("found")

// atTime returns the last record that is not later than t.
func (w *Workspace) atTime(t journal.Timespec) (journal.Seq, error) {
	var seq journal.Seq
	head := w.store.Head()
	if head == 0 {
		return 0, nil
	}
	err := w.store.RecordsDesc(0, head, func(r *journal.Record) error {
		if r.Time <= t {
			seq = r.Seq
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return 0, err
	}
	return seq, nil
}
