package control

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/winkfs/winkfs/workspace"
)

// Exec runs a command in the workspace with the caller's streams. The end of
// ctx ends the command.
func (c *Client) Exec(ctx context.Context, req *workspace.ExecRequest, s *workspace.Streams) (*workspace.ExecResult, error) {
	r, err := c.request(ctx, "exec", req)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", upgradeName)
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := r.Write(conn); err != nil {
		return nil, transportError(ctx, "exec", err)
	}
	in := bufio.NewReaderSize(conn, maxFrame)
	resp, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, transportError(ctx, "exec", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, readError("exec", resp)
	}
	res, err := converse(ctx, conn, in, s)
	if err != nil {
		return nil, transportError(ctx, "exec", err)
	}
	return res, nil
}

// converse exchanges frames until the outcome comes.
func converse(ctx context.Context, conn io.Writer, in *bufio.Reader, s *workspace.Streams) (*workspace.ExecResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, credit := &frameWriter{w: conn}, newCredit()
	defer credit.stop()
	go sendStdin(out, credit, s.Stdin)
	go forward(ctx, out, s)
	for {
		k, p, err := readFrame(in)
		if err != nil {
			return nil, fmt.Errorf("the daemon went away: %w", err)
		}
		switch k {
		case frameStdout:
			_, err = s.Stdout.Write(p)
		case frameStderr:
			_, err = s.Stderr.Write(p)
		case frameCredit:
			var n int
			if err = json.Unmarshal(p, &n); err == nil {
				credit.give(n)
			}
		case frameResult:
			res := &workspace.ExecResult{}
			return res, json.Unmarshal(p, res)
		case frameError:
			e := &workspace.Error{}
			if err := json.Unmarshal(p, e); err != nil {
				return nil, err
			}
			return nil, e
		default:
			return nil, errFrame
		}
		if err != nil {
			return nil, err
		}
	}
}

// sendStdin copies the caller's input as the command takes it.
func sendStdin(out *frameWriter, c *credit, in io.Reader) {
	buf := make([]byte, maxFrame/2)
	for in != nil {
		n, err := in.Read(buf)
		if n > 0 && (!c.take(n) || out.send(frameStdin, buf[:n]) != nil) {
			return
		}
		if err != nil {
			break
		}
	}
	_ = out.send(frameStdin, nil)
}

// forward sends window sizes and signals.
func forward(ctx context.Context, out *frameWriter, s *workspace.Streams) {
	for {
		var err error
		select {
		case w := <-s.Resize:
			err = out.sendJSON(frameResize, w)
		case n := <-s.Signals:
			err = out.sendJSON(frameSignal, n)
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
