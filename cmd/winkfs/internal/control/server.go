package control

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/winkfs/winkfs/workspace"
)

// outcomeTrailer is the HTTP trailer of streams.
const outcomeTrailer = "Winkfs-Outcome"

// maxRequest bounds a request's document.
const maxRequest = 16 << 20

// Server answers requests about one workspace.
type Server struct {
	ops  workspace.Operations
	log  *slog.Logger
	http http.Server
}

// NewServer returns a server that hands requests to ops.
func NewServer(ops workspace.Operations, log *slog.Logger) *Server {
	s := &Server{ops: ops, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/status", call(s, func(ctx context.Context, _ *struct{}) (*workspace.Status, error) { return ops.Status(ctx) }))
	mux.HandleFunc("POST /v1/show", call(s, ops.Show))
	mux.HandleFunc("POST /v1/files", call(s, ops.Files))
	mux.HandleFunc("POST /v1/undo", call(s, ops.Undo))
	mux.HandleFunc("POST /v1/redo", call(s, ops.Redo))
	mux.HandleFunc("POST /v1/rollback", call(s, ops.Rollback))
	mux.HandleFunc("POST /v1/checkpoint", call(s, ops.Checkpoint))
	mux.HandleFunc("POST /v1/begin", call(s, ops.Begin))
	mux.HandleFunc("POST /v1/end", call(s, ops.End))
	mux.HandleFunc("POST /v1/discard", call(s, ops.Discard))
	mux.HandleFunc("POST /v1/apply", call(s, ops.Apply))
	mux.HandleFunc("POST /v1/fork", call(s, ops.Fork))
	mux.HandleFunc("POST /v1/merge", call(s, ops.Merge))
	mux.HandleFunc("POST /v1/mount-at", call(s, ops.MountAt))
	mux.HandleFunc("POST /v1/unmount", call(s, ops.Unmount))
	mux.HandleFunc("POST /v1/log", stream(s, s.serveLog))
	mux.HandleFunc("POST /v1/diff", stream(s, ops.Diff))
	mux.HandleFunc("POST /v1/gc", stream(s, s.serveGC))
	mux.HandleFunc("POST /v1/file", stream(s, ops.File))
	mux.HandleFunc("POST /v1/blame", call(s, ops.Blame))
	mux.HandleFunc("POST /v1/exec", s.serveExec)
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	return s
}

// Serve answers connections until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// Shutdown stops taking requests and waits for those under way. Commands are
// not waited for: the workspace ends them.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// call makes a handler of an operation that answers with one document.
func call[Req, Res any](s *Server, op func(context.Context, *Req) (*Res, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := new(Req)
		if !s.decode(w, r, req) {
			return
		}
		res, err := op(r.Context(), req)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		s.encode(w, r, res)
	}
}

// outcome is how a stream ended.
type outcome struct {
	Result json.RawMessage  `json:"result,omitempty"`
	Error  *workspace.Error `json:"error,omitempty"`
}

// stream makes a handler of an operation that writes as it goes.
func stream[Req, Res any](s *Server, op func(context.Context, *Req, io.Writer) (*Res, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := new(Req)
		if !s.decode(w, r, req) {
			return
		}
		w.Header().Set("Trailer", outcomeTrailer)
		res, err := op(r.Context(), req, w)
		var out outcome
		if err != nil {
			s.note(r, err)
			out.Error = workspace.AsError(err)
		} else {
			out.Result, _ = json.Marshal(res)
		}
		b, _ := json.Marshal(out)
		w.Header().Set(outcomeTrailer, string(b))
	}
}

func (s *Server) serveLog(ctx context.Context, req *workspace.LogRequest, w io.Writer) (*struct{}, error) {
	enc := json.NewEncoder(w)
	return nil, s.ops.Log(ctx, req, func(l *workspace.LogEntry) error { return enc.Encode(l) })
}

func (s *Server) serveGC(ctx context.Context, req *workspace.GCRequest, w io.Writer) (*workspace.GCResult, error) {
	enc := json.NewEncoder(w)
	flush := func() {}
	if f, ok := w.(http.Flusher); ok {
		flush = f.Flush
	}
	return s.ops.GC(ctx, req, func(p *workspace.GCProgress) error {
		defer flush()
		return enc.Encode(p)
	})
}

func (s *Server) decode(w http.ResponseWriter, r *http.Request, req any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(req); err != nil {
		s.fail(w, r, workspace.Wrap(workspace.CodeUsage, err, "read request"))
		return false
	}
	return true
}

func (s *Server) encode(w io.Writer, r *http.Request, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		s.note(r, err)
	}
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.note(r, err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	s.encode(w, r, workspace.AsError(err))
}

func (s *Server) note(r *http.Request, err error) {
	s.log.Info("request failed", "op", r.URL.Path, "code", string(workspace.CodeOf(err)), "err", err)
}
