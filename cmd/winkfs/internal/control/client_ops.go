package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/winkfs/winkfs/workspace"
)

// Status asks for the workspace's status.
func (c *Client) Status(ctx context.Context) (*workspace.Status, error) {
	return ask[workspace.Status](ctx, c, "status", struct{}{})
}

// Show asks for one record or command.
func (c *Client) Show(ctx context.Context, req *workspace.ShowRequest) (*workspace.ShowResult, error) {
	return ask[workspace.ShowResult](ctx, c, "show", req)
}

// Files asks for the changed files.
func (c *Client) Files(ctx context.Context, req *workspace.FilesRequest) (*workspace.FilesResult, error) {
	return ask[workspace.FilesResult](ctx, c, "files", req)
}

// Undo asks for a command or record to be reverted.
func (c *Client) Undo(ctx context.Context, req *workspace.UndoRequest) (*workspace.HistoryResult, error) {
	return ask[workspace.HistoryResult](ctx, c, "undo", req)
}

// Redo asks for the last undo to be taken back.
func (c *Client) Redo(ctx context.Context, req *workspace.RedoRequest) (*workspace.HistoryResult, error) {
	return ask[workspace.HistoryResult](ctx, c, "redo", req)
}

// Rollback asks for the return to a point.
func (c *Client) Rollback(ctx context.Context, req *workspace.RollbackRequest) (*workspace.HistoryResult, error) {
	return ask[workspace.HistoryResult](ctx, c, "rollback", req)
}

// Checkpoint asks for a point to be named, or for the names.
func (c *Client) Checkpoint(ctx context.Context, req *workspace.CheckpointRequest) (*workspace.CheckpointResult, error) {
	return ask[workspace.CheckpointResult](ctx, c, "checkpoint", req)
}

// Begin asks for a group of commands to be opened.
func (c *Client) Begin(ctx context.Context, req *workspace.BeginRequest) (*workspace.GroupResult, error) {
	return ask[workspace.GroupResult](ctx, c, "begin", req)
}

// End asks for the open group to be closed.
func (c *Client) End(ctx context.Context, req *workspace.EndRequest) (*workspace.GroupResult, error) {
	return ask[workspace.GroupResult](ctx, c, "end", req)
}

// Discard asks for changes to be dropped.
func (c *Client) Discard(ctx context.Context, req *workspace.DiscardRequest) (*workspace.HistoryResult, error) {
	return ask[workspace.HistoryResult](ctx, c, "discard", req)
}

// Apply asks for changes to be written to the sources.
func (c *Client) Apply(ctx context.Context, req *workspace.ApplyRequest) (*workspace.ApplyResult, error) {
	return ask[workspace.ApplyResult](ctx, c, "apply", req)
}

// Fork asks for the journal of a clone.
func (c *Client) Fork(ctx context.Context, req *workspace.ForkRequest) (*workspace.ForkResult, error) {
	return ask[workspace.ForkResult](ctx, c, "fork", req)
}

// Merge asks for the changes of a fork.
func (c *Client) Merge(ctx context.Context, req *workspace.MergeRequest) (*workspace.MergeResult, error) {
	return ask[workspace.MergeResult](ctx, c, "merge", req)
}

// MountAt asks for a past state to be mounted.
func (c *Client) MountAt(ctx context.Context, req *workspace.MountAtRequest) (*workspace.MountAtResult, error) {
	return ask[workspace.MountAtResult](ctx, c, "mount-at", req)
}

// Unmount asks the daemon to end.
func (c *Client) Unmount(ctx context.Context, req *workspace.UnmountRequest) (*workspace.UnmountResult, error) {
	return ask[workspace.UnmountResult](ctx, c, "unmount", req)
}

// Log hands the selected records to fn.
func (c *Client) Log(ctx context.Context, req *workspace.LogRequest, fn func(*workspace.LogEntry) error) error {
	resp, err := c.post(ctx, "log", req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		l := &workspace.LogEntry{}
		err := dec.Decode(l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return transportError(ctx, "log", err)
		}
		if err := fn(l); err != nil {
			return err
		}
	}
	_, err = finish[struct{}]("log", resp)
	return err
}

// GC reclaims history and hands over how far it is.
func (c *Client) GC(ctx context.Context, req *workspace.GCRequest, fn func(*workspace.GCProgress) error) (*workspace.GCResult, error) {
	resp, err := c.post(ctx, "gc", req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		p := &workspace.GCProgress{}
		err := dec.Decode(p)
		if errors.Is(err, io.EOF) {
			return finish[workspace.GCResult]("gc", resp)
		}
		if err != nil {
			return nil, transportError(ctx, "gc", err)
		}
		if err := fn(p); err != nil {
			return nil, err
		}
	}
}

// File copies a file at a point to w.
func (c *Client) File(ctx context.Context, req *workspace.FileRequest, w io.Writer) (*workspace.FileInfo, error) {
	resp, err := c.post(ctx, "file", req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return nil, fmt.Errorf("copy file: %w", err)
	}
	return finish[workspace.FileInfo]("file", resp)
}

// Blame asks who wrote the lines of a file.
func (c *Client) Blame(ctx context.Context, req *workspace.BlameRequest) (*workspace.BlameResult, error) {
	return ask[workspace.BlameResult](ctx, c, "blame", req)
}

// Diff copies the difference to w.
func (c *Client) Diff(ctx context.Context, req *workspace.DiffRequest, w io.Writer) (*workspace.DiffSummary, error) {
	resp, err := c.post(ctx, "diff", req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return nil, fmt.Errorf("copy difference: %w", err)
	}
	return finish[workspace.DiffSummary]("diff", resp)
}
