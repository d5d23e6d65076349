package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type removeOptions struct {
	workspace   string
	yes, dryRun bool
}

// removeDocument is the document winkfs.rm/v1.
type removeDocument struct {
	Schema  string       `json:"schema"`
	Removed []removeItem `json:"removed"`
	DryRun  bool         `json:"dry_run,omitempty"`
}

type removeItem struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func newRemoveCommand(e *env) *cli.Command {
	var o removeOptions
	return &cli.Command{
		Name: "rm", Usage: "remove workspaces with their changes and history", ArgsUsage: "[WORKSPACE...]",
		Description: "The sources are not touched, and forks keep what they share with the workspace. This can't be undone.",
		Flags:       []cli.Flag{workspaceFlag(&o.workspace), jsonFlag(e), yesFlag(&o.yes), dryRunFlag(&o.dryRun)},
		Action: func(c *cli.Context) error {
			refs := c.Args().Slice()
			if o.workspace != "" {
				refs = append(refs, o.workspace)
			}
			if len(refs) == 0 {
				return usage("rm needs the workspaces to remove: winkfs rm WORKSPACE...")
			}
			return runRemove(e, o, refs)
		},
	}
}

func runRemove(e *env, o removeOptions, refs []string) error {
	entries, err := e.removable(refs)
	if err != nil {
		return err
	}
	doc := removeDocument{Schema: "winkfs.rm/v1", Removed: []removeItem{}, DryRun: o.dryRun}
	if !o.dryRun {
		if err := e.confirm(o.yes, removeQuestion(entries)); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if !o.dryRun {
			if err := workspace.Remove(entry); err != nil {
				return err
			}
		}
		doc.Removed = append(doc.Removed, removeItem{entry.ID, entry.Name()})
	}
	if e.globals.json {
		return e.emit(doc)
	}
	for _, it := range doc.Removed {
		fmt.Fprintf(e.stdout, "%s\t%s\n", it.ID, printable(it.Name))
	}
	if o.dryRun {
		e.note("%d workspace(s) would be removed", len(doc.Removed))
	}
	return nil
}

// removable finds the workspaces, damaged ones too, and refuses mounted ones
// before anything is removed.
func (e *env) removable(refs []string) ([]*workspace.Entry, error) {
	reg, err := e.registry()
	if err != nil {
		return nil, err
	}
	var entries []*workspace.Entry
	seen := map[string]bool{}
	for _, ref := range refs {
		entry, err := reg.Find(ref)
		if entry == nil {
			return nil, err
		}
		if ref != entry.ID && ref != entry.Name() && !filepath.IsAbs(ref) {
			return nil, workspace.Fail(workspace.CodeUnknown, "remove workspace %q: there is none of this id or name", ref).
				Hinted("to remove %s (%s), write its id in full", entry.ID, entry.Name())
		}
		if entry.Live {
			return nil, workspace.Fail(workspace.CodeFailure, "remove workspace %s: it is mounted at %s", shown(entry), entry.Mountpoint()).
				Hinted("unmount it first: winkfs umount %s", shown(entry))
		}
		if !seen[entry.ID] {
			seen[entry.ID] = true
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

func removeQuestion(entries []*workspace.Entry) string {
	var names []string
	for _, entry := range entries {
		names = append(names, shown(entry))
	}
	return fmt.Sprintf("Remove %s with all changes and history?", printable(strings.Join(names, ", ")))
}
