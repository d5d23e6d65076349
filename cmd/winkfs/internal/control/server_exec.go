package control

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"

	"github.com/winkfs/winkfs/workspace"
)

// upgradeName is the protocol that exec upgrades to.
const upgradeName = "winkfs-exec/1"

// serveExec runs a command over an upgraded connection.
func (s *Server) serveExec(w http.ResponseWriter, r *http.Request) {
	req := &workspace.ExecRequest{}
	if !s.decode(w, r, req) {
		return
	}
	if r.Header.Get("Upgrade") != upgradeName {
		s.fail(w, r, workspace.Fail(workspace.CodeUsage, "exec needs the upgrade to %s", upgradeName))
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.fail(w, r, workspace.Wrap(workspace.CodeFailure, err, "take over connection"))
		return
	}
	defer conn.Close()
	const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgradeName + "\r\n\r\n"
	if _, err := conn.Write([]byte(head)); err != nil {
		s.note(r, err)
		return
	}
	s.runExec(req, conn, buf.Reader, r)
}

// runExec runs the command and sends its outcome. The command ends when the
// client goes away.
func (s *Server) runExec(req *workspace.ExecRequest, conn net.Conn, in *bufio.Reader, r *http.Request) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &frameWriter{w: conn}
	stdin := newStdinQueue(func(n int) { _ = out.sendJSON(frameCredit, n) })
	resize, signals := make(chan workspace.Winsize, 8), make(chan int, 8)
	go func() {
		defer cancel()
		defer stdin.close()
		if err := receive(ctx, in, stdin, resize, signals); err != nil {
			s.log.Debug("client gone", "err", err)
		}
	}()
	res, err := s.ops.Exec(ctx, req, &workspace.Streams{
		Stdin: stdin, Stdout: out.stream(frameStdout), Stderr: out.stream(frameStderr), Resize: resize, Signals: signals,
	})
	if err != nil {
		s.note(r, err)
		_ = out.sendJSON(frameError, workspace.AsError(err))
		return
	}
	_ = out.sendJSON(frameResult, res)
}

// receive hands on what the client sends, until it goes away.
func receive(ctx context.Context, in *bufio.Reader, stdin *stdinQueue, resize chan<- workspace.Winsize, signals chan<- int) error {
	for {
		k, p, err := readFrame(in)
		if err != nil {
			return err
		}
		switch k {
		case frameStdin:
			if len(p) == 0 {
				stdin.close()
			} else if !stdin.push(p) {
				return errFrame
			}
		case frameResize:
			err = pass(ctx, p, resize)
		case frameSignal:
			err = pass(ctx, p, signals)
		default:
			return errFrame
		}
		if err != nil {
			return err
		}
	}
}

// pass decodes a message and queues it. When nobody takes such messages, those
// that don't fit are dropped.
func pass[T any](ctx context.Context, p []byte, to chan<- T) error {
	var v T
	if err := json.Unmarshal(p, &v); err != nil {
		return err
	}
	select {
	case to <- v:
	case <-ctx.Done():
	default:
	}
	return nil
}
