package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winkfs/winkfs/workspace"
)

// fakeOps answers what the tests ask for; everything else panics.
type fakeOps struct {
	workspace.Operations
	exec func(context.Context, *workspace.ExecRequest, *workspace.Streams) (*workspace.ExecResult, error)
}

func (f *fakeOps) Status(context.Context) (*workspace.Status, error) {
	return &workspace.Status{ID: "abc", Head: 7}, nil
}

func (f *fakeOps) Undo(_ context.Context, req *workspace.UndoRequest) (*workspace.HistoryResult, error) {
	e := workspace.Fail(workspace.CodeConflict, "undo %s", req.What).Hinted("hint").At("p")
	e.Conflicts = []workspace.Conflict{{Path: "a", Reason: "r"}}
	return nil, fmt.Errorf("outer: %w", e)
}

func (f *fakeOps) Log(_ context.Context, req *workspace.LogRequest, fn func(*workspace.LogEntry) error) error {
	for i := range req.Limit {
		if err := fn(&workspace.LogEntry{Seq: uint64(i + 1)}); err != nil {
			return err
		}
	}
	if req.Denied {
		return workspace.Fail(workspace.CodeCorrupt, "cut")
	}
	return nil
}

func (f *fakeOps) Diff(_ context.Context, req *workspace.DiffRequest, w io.Writer) (*workspace.DiffSummary, error) {
	if _, err := fmt.Fprintf(w, "%q", []string(req.Paths)); err != nil {
		return nil, err
	}
	return &workspace.DiffSummary{Renamed: 3}, nil
}

func (f *fakeOps) Exec(ctx context.Context, req *workspace.ExecRequest, s *workspace.Streams) (*workspace.ExecResult, error) {
	return f.exec(ctx, req, s)
}

// serve starts a server in a state directory and returns a client of it.
func serve(t *testing.T, dir string, ops workspace.Operations) *Client {
	t.Helper()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(ops, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c := NewClient(dir)
	t.Cleanup(func() {
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-done); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCallsAndErrors(t *testing.T) {
	c := serve(t, t.TempDir(), &fakeOps{})
	st, err := c.Status(t.Context())
	if err != nil || st.ID != "abc" || st.Head != 7 {
		t.Fatalf("status %+v, %v", st, err)
	}
	_, err = c.Undo(t.Context(), &workspace.UndoRequest{What: "exec:1"})
	e := workspace.AsError(err)
	if e.Code != workspace.CodeConflict || e.Message != "outer: undo exec:1" || e.Hint != "hint" || e.Path != "p" || len(e.Conflicts) != 1 {
		t.Errorf("error lost something on the way: %+v", e)
	}
}

func TestStreams(t *testing.T) {
	c := serve(t, t.TempDir(), &fakeOps{})
	n := 0
	if err := c.Log(t.Context(), &workspace.LogRequest{Limit: 1000}, func(*workspace.LogEntry) error { n++; return nil }); err != nil || n != 1000 {
		t.Errorf("log: %d entries, %v", n, err)
	}
	err := c.Log(t.Context(), &workspace.LogRequest{Limit: 2, Denied: true}, func(*workspace.LogEntry) error { return nil })
	if workspace.CodeOf(err) != workspace.CodeCorrupt {
		t.Errorf("error behind a stream: %v", err)
	}
	var b bytes.Buffer
	sum, err := c.Diff(t.Context(), &workspace.DiffRequest{Paths: workspace.PathList{"a\xff"}}, &b)
	if err != nil || sum.Renamed != 3 || b.String() != `["a\xff"]` {
		t.Errorf("diff: %q, %+v, %v", b.String(), sum, err)
	}
}

func TestLongSocketPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := serve(t, dir, &fakeOps{})
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(dir, workspace.SocketName))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", fi, err)
	}
}

func TestNobodyThere(t *testing.T) {
	_, err := NewClient(t.TempDir()).Status(t.Context())
	if workspace.CodeOf(err) != workspace.CodeNotMounted {
		t.Errorf("got %v", err)
	}
}

func TestUnknownField(t *testing.T) {
	c := serve(t, t.TempDir(), &fakeOps{})
	resp, err := c.http.Post("http://winkfs/v1/status", "application/json", strings.NewReader(`{"bogus":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("status %s", resp.Status)
	}
}

func TestExec(t *testing.T) {
	ops := &fakeOps{exec: func(_ context.Context, req *workspace.ExecRequest, s *workspace.Streams) (*workspace.ExecResult, error) {
		in, err := io.ReadAll(s.Stdin)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(s.Stderr, "%d", <-s.Signals)
		_, err = s.Stdout.Write(in)
		return &workspace.ExecResult{ExitCode: 5, Command: req.Command}, err
	}}
	c := serve(t, t.TempDir(), ops)
	in := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than the window
	signals := make(chan int, 1)
	signals <- 15
	var out, errOut bytes.Buffer
	res, err := c.Exec(t.Context(), &workspace.ExecRequest{Command: []string{"x"}}, &workspace.Streams{
		Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errOut, Signals: signals,
	})
	if err != nil || res.ExitCode != 5 || res.Command[0] != "x" {
		t.Fatalf("%+v, %v", res, err)
	}
	if !bytes.Equal(out.Bytes(), in) || errOut.String() != "15" {
		t.Errorf("output %d bytes, %q", out.Len(), errOut.String())
	}
}

func TestExecError(t *testing.T) {
	ops := &fakeOps{exec: func(context.Context, *workspace.ExecRequest, *workspace.Streams) (*workspace.ExecResult, error) {
		return nil, workspace.Fail(workspace.CodeNoCommand, "nope")
	}}
	_, err := serve(t, t.TempDir(), ops).Exec(t.Context(), &workspace.ExecRequest{}, &workspace.Streams{Stdout: io.Discard, Stderr: io.Discard})
	if workspace.CodeOf(err) != workspace.CodeNoCommand {
		t.Errorf("got %v", err)
	}
}

// A client that goes away ends its command, though the command reads nothing.
func TestExecClientGone(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	ops := &fakeOps{exec: func(ctx context.Context, _ *workspace.ExecRequest, _ *workspace.Streams) (*workspace.ExecResult, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}}
	c := serve(t, t.TempDir(), ops)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := c.Exec(ctx, &workspace.ExecRequest{}, &workspace.Streams{
		Stdin: bytes.NewReader(make([]byte, 1<<20)), Stdout: io.Discard, Stderr: io.Discard,
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the command goes on")
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x01x"))
	f.Add([]byte("i\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, p, err := readFrame(bytes.NewReader(b))
		if err != nil {
			return
		}
		var w bytes.Buffer
		if err := (&frameWriter{w: &w}).send(k, p); err != nil || !bytes.HasPrefix(b, w.Bytes()) {
			t.Fatalf("%q became %q, %v", b, w.Bytes(), err)
		}
	})
}
