package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

// listDocument is the document winkfs.list/v1.
type listDocument struct {
	Schema     string     `json:"schema"`
	Workspaces []listItem `json:"workspaces"`
}

type listItem struct {
	ID         string             `json:"id"`
	Name       string             `json:"name"`
	Mountpoint string             `json:"mountpoint"`
	Mounted    bool               `json:"mounted"`
	PID        int                `json:"pid"`
	Created    workspace.Time     `json:"created"`
	Sources    []workspace.Source `json:"sources"`
	Dir        string             `json:"state_dir"`
	Parent     *workspace.Parent  `json:"parent,omitempty"` // of a fork
	Error      string             `json:"error,omitempty"`
}

func newListCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the workspaces", Flags: []cli.Flag{jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runList(c.Context, e)
		},
	}
}

func runList(_ context.Context, e *env) error {
	reg, err := e.registry()
	if err != nil {
		return err
	}
	all, err := reg.List()
	if err != nil {
		return err
	}
	doc := listDocument{Schema: "winkfs.list/v1", Workspaces: []listItem{}}
	for _, w := range all {
		doc.Workspaces = append(doc.Workspaces, newListItem(w))
	}
	if e.globals.json {
		return e.emit(doc)
	}
	return writeList(e.stdout, doc.Workspaces)
}

func newListItem(w *workspace.Entry) listItem {
	it := listItem{ID: w.ID, Name: w.Name(), Mounted: w.Live, Dir: w.Dir, Sources: []workspace.Source{}}
	if w.Live && w.Runtime != nil {
		it.Mountpoint, it.PID = w.Runtime.Mountpoint, w.Runtime.PID
	}
	if w.Config != nil {
		it.Created, it.Sources, it.Parent = w.Config.Created, w.Config.Sources, w.Config.Parent
	}
	if w.Err != nil {
		it.Error = w.Err.Error()
	}
	return it
}

func writeList(w io.Writer, items []listItem) error {
	if len(items) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tNAME\tFORK OF\tCREATED\tMOUNT POINT\tSOURCES")
	for _, it := range items {
		mount := "-"
		if it.Mounted {
			mount = it.Mountpoint
		}
		name := it.Name
		if name == "" {
			name = "-"
		}
		fork := "-"
		if it.Parent != nil {
			fork = parentName(it.Parent)
		}
		detail := sourceList(it.Sources)
		if it.Error != "" {
			detail = "unusable: " + it.Error
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", it.ID, printable(name), printable(fork), it.Created.Local().Format("2006-01-02 15:04"), printable(mount), printable(detail))
	}
	return tw.Flush()
}

// parentName is how a fork's parent, which may be gone, is called.
func parentName(p *workspace.Parent) string {
	if p.Name != "" {
		return p.Name
	}
	return p.ID
}

func sourceList(sources []workspace.Source) string {
	var parts []string
	for _, s := range sources {
		parts = append(parts, s.Host)
	}
	return strings.Join(parts, ", ")
}
