package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type mountOptions struct {
	workspace  string
	name       string
	config     string
	at         string
	mounts     []string
	ephemeral  bool
	foreground bool
	readOnly   bool
	allowOther bool
	options    []string

	mount8 bool // the arguments are those of mount(8)
	fake   bool // all but mount, as mount(8)'s -f

	// From the words of -o.
	noSuid, noDev, noExec bool
	profile               string
	lower                 []string // lower directories, the first on top
	upper                 string   // the state directory
}

func newMountCommand(e *env) *cli.Command {
	var o mountOptions
	var mounts, options cli.StringSlice
	return &cli.Command{
		Name: "mount", Usage: "mount a workspace and return when it is usable", ArgsUsage: "[SOURCE] MOUNTPOINT",
		Description: "With a SOURCE a workspace is made over it, or the one that was mounted there before over the same\nsource goes on. Without one, -w names the workspace to go on with, or --config or --mount the sources.",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.StringFlag{Name: "name", Usage: "name the workspace `N`", Destination: &o.name},
			&cli.StringFlag{Name: "config", Usage: "take the configuration from `FILE`", Destination: &o.config},
			&cli.StringSliceFlag{Name: "mount", Usage: "a source: `host=DIR`,at=PLACE,mode=rw|ro", Destination: &mounts},
			&cli.BoolFlag{Name: "ephemeral", Usage: "remove the workspace when it is unmounted", Destination: &o.ephemeral},
			&cli.BoolFlag{Name: "foreground", Aliases: []string{"f"}, Usage: "serve in this process", Destination: &o.foreground},
			&cli.StringFlag{Name: "at", Usage: "mount the state at `POINT` read-only, beside the live mount: a number, exec:N, group:N, a checkpoint or a time", Destination: &o.at},
			&cli.StringSliceFlag{Name: "options", Aliases: []string{"o"}, Usage: "options as mount(8) gives them: ro, nosuid, nodev, noexec, allow_other, config=, name=, profile=default|posix-full (root only), lowerdir=A[:B...], upperdir=STATE", Destination: &options},
			&cli.BoolFlag{Name: "mount8", Hidden: true, Destination: &o.mount8},
			&cli.BoolFlag{Name: "fake", Hidden: true, Destination: &o.fake},
		},
		Action: func(c *cli.Context) error {
			o.mounts, o.options = mounts.Value(), options.Value()
			return runMount(c.Context, e, o, c.Args().Slice())
		},
	}
}

func runMount(ctx context.Context, e *env, o mountOptions, args []string) error {
	if o.remounts() {
		return runRemount(o, args)
	}
	if err := o.words(e); err != nil {
		return err
	}
	if o.at != "" {
		return runMountAt(ctx, e, o, args)
	}
	source, mountpoint, err := o.places(args)
	if err != nil {
		return err
	}
	mountpoint, err = workspace.Mountpoint(mountpoint)
	if err != nil {
		return err
	}
	if o.fake {
		return nil
	}
	entry, fresh, err := e.mountable(o, source, mountpoint)
	if err != nil {
		return err
	}
	if err := workspace.AwaitEnd(ctx, entry); err != nil {
		return err
	}
	if entry.Live {
		return workspace.Fail(workspace.CodeFailure, "mount workspace %s: it is mounted at %s already", shown(entry), entry.Mountpoint()).
			Hinted("winkfs umount %s", shown(entry))
	}
	d := daemonSpec{
		entry: entry, mountpoint: mountpoint, readOnly: o.readOnly, allowOther: o.allowOther,
		noSuid: o.noSuid, noDev: o.noDev, noExec: o.noExec,
		noWalk: o.mount8, overlay: o.upper != "", fill: o.upper != "" && fresh,
	}
	var msg *ready
	if o.foreground {
		err = e.serve(ctx, d, nil)
	} else {
		msg, err = e.spawn(ctx, d)
	}
	if err != nil && fresh {
		_ = workspace.Remove(entry)
	}
	if err != nil || o.foreground || o.mount8 {
		return err
	}
	return e.mountedNote(ctx, entry, mountpoint, msg.Degraded)
}

// shown is how a workspace is called towards people: by its name, else its id.
func shown(entry *workspace.Entry) string {
	if n := entry.Name(); n != "" {
		return n
	}
	return entry.ID
}

// mountedNote tells of a new mount. Only for JSON, which is the status, is the
// workspace compared with its base.
func (e *env) mountedNote(ctx context.Context, entry *workspace.Entry, mountpoint string, degraded []string) error {
	if e.globals.json {
		return runStatus(ctx, e, entry.ID)
	}
	fmt.Fprintln(e.stdout, entry.ID)
	e.note("mounted at %s", printable(mountpoint))
	for _, d := range degraded {
		e.note("degraded: %s", printable(d))
	}
	return nil
}

// places splits the positional arguments.
func (o *mountOptions) places(args []string) (source, mountpoint string, err error) {
	switch {
	case len(args) == 1:
		return "", args[0], nil
	case len(args) == 2 && len(o.lower) > 0 && o.mount8:
		return "", args[1], nil // the source is only a label then
	case len(args) == 2:
		if o.workspace != "" || len(o.mounts) > 0 || len(o.lower) > 0 {
			return "", "", usage("mount takes a SOURCE, or -w, or --mount, or -o lowerdir=, not two of them")
		}
		return args[0], args[1], nil
	}
	return "", "", usage("mount needs a mount point: winkfs mount [SOURCE] MOUNTPOINT")
}

// mountable finds the workspace to mount or makes it. fresh says that it was
// made.
func (e *env) mountable(o mountOptions, source, mountpoint string) (entry *workspace.Entry, fresh bool, err error) {
	reg, err := e.registry()
	if err != nil {
		return nil, false, err
	}
	if o.workspace != "" {
		entry, err := reg.Find(o.workspace)
		return entry, false, err
	}
	cfg, err := o.effective(source)
	if err != nil {
		return nil, false, err
	}
	if entry, err := o.resume(reg, cfg, mountpoint); entry != nil || err != nil {
		return entry, false, err
	}
	if len(cfg.Sources) == 0 {
		return nil, false, usage("nothing to mount: name a SOURCE, -w WORKSPACE, --mount or --config with sandbox.paths")
	}
	if err := cfg.Resolve(reg.Root()); err != nil {
		return nil, false, err
	}
	if err := workspace.CheckMount(reg.Root(), cfg, mountpoint); err != nil {
		return nil, false, err
	}
	entry, err = workspace.Create(reg, cfg)
	return entry, true, err
}

// resume finds the workspace that goes on, nil if there is none yet. An upper
// directory holds one workspace, wherever it is mounted.
func (o *mountOptions) resume(reg *workspace.Registry, cfg *workspace.Config, mountpoint string) (*workspace.Entry, error) {
	if o.upper != "" && o.name == "" {
		return reg.ResumeOnly(cfg, o.config != "")
	}
	return reg.Resume(cfg, mountpoint, o.config != "")
}

// effective returns the configuration that flags and files make.
func (o *mountOptions) effective(source string) (*workspace.Config, error) {
	cfg := workspace.DefaultConfig()
	if o.config != "" {
		var err error
		if cfg, err = workspace.LoadConfig(o.config); err != nil {
			return nil, err
		}
	}
	if source != "" {
		cfg.Sources = append([]workspace.Source{{Host: source, At: "/", Mode: "rw"}}, cfg.Sources...)
	}
	if len(o.lower) > 0 {
		top := workspace.Source{Host: o.lower[0], At: "/", Mode: "rw", Below: o.lower[1:]}
		cfg.Sources = append([]workspace.Source{top}, cfg.Sources...)
	}
	for _, m := range o.mounts {
		s, err := parseMount(m)
		if err != nil {
			return nil, err
		}
		cfg.Sources = append(cfg.Sources, s)
	}
	cfg.Name, cfg.Ephemeral = o.name, o.ephemeral
	if o.profile != "" {
		cfg.Profile = o.profile
	}
	return cfg, nil
}

// parseMount reads the value of --mount.
func parseMount(value string) (workspace.Source, error) {
	s := workspace.Source{Mode: "ro"}
	for word := range strings.SplitSeq(value, ",") {
		key, val, _ := strings.Cut(word, "=")
		switch key {
		case "host":
			s.Host = val
		case "at":
			s.At = val
		case "mode":
			s.Mode = val
		case "include", "exclude", "max-bytes", "follow-symlinks", "copy":
			return s, usage("--mount: %s is not supported yet", key)
		default:
			return s, usage("--mount: unknown word %q; known are host=, at=, mode=", word)
		}
	}
	switch {
	case s.Host == "":
		return s, usage("--mount: host= is missing in %q", value)
	case s.Mode != "rw" && s.Mode != "ro":
		return s, usage("--mount: mode must be rw or ro, not %q", s.Mode)
	}
	return s, nil
}
