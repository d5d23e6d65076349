package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type gcOptions struct {
	workspace           string
	age, bytes, records string
	dryRun              bool
}

func newGCCommand(e *env) *cli.Command {
	var o gcOptions
	return &cli.Command{
		Name: "gc", Usage: "reclaim history by the retention", ArgsUsage: "[WORKSPACE]",
		Description: "Drops the oldest records, in pieces of some MiB, and the contents that only they need. What the workspace\n" +
			"has now is kept, and so is all that checkpoints and forks need. The limits are those of the\n" +
			"configuration (retention) unless flags say otherwise; 0 is no limit. It can run while the workspace is mounted.",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e), dryRunFlag(&o.dryRun),
			&cli.StringFlag{Name: "age", Usage: "drop what is older than `DURATION` (720h, 30d)", Destination: &o.age},
			&cli.StringFlag{Name: "bytes", Usage: "keep at most `SIZE` of history (20GiB)", Destination: &o.bytes},
			&cli.StringFlag{Name: "records", Usage: "keep at most about `N` records", Destination: &o.records},
		},
		Action: func(c *cli.Context) error {
			name, err := oneWorkspace(c, o.workspace)
			if err != nil {
				return err
			}
			return runGC(c.Context, e, name, o)
		},
	}
}

func runGC(ctx context.Context, e *env, ref string, o gcOptions) error {
	req, err := o.request()
	if err != nil {
		return err
	}
	return e.withWorkspace(ctx, ref, workspace.ReadWrite, func(ops workspace.Operations) error {
		p := e.progress()
		res, err := ops.GC(ctx, req, func(g *workspace.GCProgress) error {
			p.show(g.Step, g.Done, g.Total)
			return nil
		})
		p.end()
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		e.writeGC(res)
		return nil
	})
}

func (o *gcOptions) request() (*workspace.GCRequest, error) {
	req := &workspace.GCRequest{DryRun: o.dryRun}
	if o.age != "" {
		age, err := workspace.ParseAge(o.age)
		if err != nil {
			return nil, usage("--age: %v", err)
		}
		req.Age = &age
	}
	for _, f := range []struct {
		name, value string
		to          **int64
	}{{"bytes", o.bytes, &req.Bytes}, {"records", o.records, &req.Records}} {
		if f.value == "" {
			continue
		}
		n, err := workspace.ParseSize(f.value)
		if err != nil {
			return nil, usage("--%s: %v", f.name, err)
		}
		*f.to = &n
	}
	return req, nil
}

func (e *env) writeGC(res *workspace.GCResult) {
	verb := "dropped"
	if res.DryRun {
		verb = "would drop"
	}
	fmt.Fprintf(e.stdout, "%s %d records, %d bytes freed; history begins at record %d\n", verb, res.Dropped, res.Freed, res.First)
	if res.HeldBy != "" {
		fmt.Fprintf(e.stdout, "more is kept by %s\n", printable(res.HeldBy))
	}
}
