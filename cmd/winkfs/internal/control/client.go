package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/winkfs/winkfs/workspace"
)

// Client asks the daemon of one workspace. Safe for concurrent use.
type Client struct {
	dir  string
	http *http.Client
}

var _ workspace.Operations = (*Client)(nil)

// NewClient returns a client of the daemon whose socket is in the state
// directory. Nothing is sent before the first request.
func NewClient(dir string) *Client {
	c := &Client{dir: dir}
	c.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.dial(ctx)
	}}}
	return c
}

// Close drops idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	path, release, err := workspace.SocketPath(c.dir)
	if err != nil {
		return nil, err
	}
	defer release()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, workspace.Wrap(workspace.CodeNotMounted, err, "reach daemon").
			Hinted("it may have ended; `winkfs list` shows what is mounted, the file `log` in %s what happened", c.dir)
	}
	return conn, nil
}

func (c *Client) request(ctx context.Context, op string, req any) (*http.Request, error) {
	b, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://winkfs/v1/"+op, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// post sends a request and returns the response, or the error in it.
func (c *Client) post(ctx context.Context, op string, req any) (*http.Response, error) {
	r, err := c.request(ctx, op, req)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, transportError(ctx, op, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readError(op, resp)
	}
	return resp, nil
}

// transportError is the error of a request that was not answered.
func transportError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *workspace.Error
	if errors.As(err, &e) {
		return e
	}
	return workspace.Wrap(workspace.CodeNotMounted, err, "ask daemon for %s", op)
}

func readError(op string, resp *http.Response) error {
	e := &workspace.Error{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxResult)).Decode(e); err != nil || e.Message == "" {
		return workspace.Fail(workspace.CodeFailure, "ask daemon for %s: unexpected answer %s", op, resp.Status)
	}
	return e
}

func ask[Res any](ctx context.Context, c *Client, op string, req any) (*Res, error) {
	resp, err := c.post(ctx, op, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	res := new(Res)
	if err := json.NewDecoder(resp.Body).Decode(res); err != nil {
		return nil, transportError(ctx, op, err)
	}
	return res, nil
}

// finish reads the outcome of a stream whose body was read to its end.
func finish[Res any](op string, resp *http.Response) (*Res, error) {
	var out outcome
	if err := json.Unmarshal([]byte(resp.Trailer.Get(outcomeTrailer)), &out); err != nil {
		return nil, workspace.Fail(workspace.CodeFailure, "ask daemon for %s: the answer was cut off", op)
	}
	if out.Error != nil {
		return nil, out.Error
	}
	res := new(Res)
	if err := json.Unmarshal(out.Result, res); err != nil {
		return nil, fmt.Errorf("decode outcome: %w", err)
	}
	return res, nil
}
