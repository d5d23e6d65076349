package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/workspace"
)

// diffDocument asks for all changes against the base as a document.
func diffDocument(ctx context.Context, ops workspace.Operations) (*diffview.Document, error) {
	r, w := io.Pipe()
	go func() {
		_, err := ops.Diff(ctx, &workspace.DiffRequest{Format: workspace.FormatJSON}, w)
		w.CloseWithError(err)
	}()
	defer r.Close()
	doc := &diffview.Document{}
	if err := json.NewDecoder(r).Decode(doc); err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	_, err := io.Copy(io.Discard, r)
	return doc, err
}
