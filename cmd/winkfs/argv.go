package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

// flagSpec is what the reordering must know of a flag.
type flagSpec struct {
	name       string
	takesValue bool
}

// flagTable maps every spelling, dashes included, to its flag.
type flagTable map[string]flagSpec

func (t flagTable) add(flags []cli.Flag) {
	for _, f := range flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			spec := flagSpec{name: name, takesValue: !isBool}
			t[dashed(name)] = spec
		}
	}
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// reorder brings an argument list into the order that urfave/cli reads:
// program, global flags, command, its flags, "--", positional arguments. Flags
// are recognised anywhere before "--". An unknown flag, a flag without its
// value or a value for a flag that takes none is a usage error.
func reorder(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	global := flagTable{}
	global.add(app.Flags)
	global.add([]cli.Flag{cli.HelpFlag, cli.VersionFlag})
	name, at, err := commandName(global, args[1:])
	if err != nil {
		return nil, err
	}
	if name == "" {
		return args, nil
	}
	rest := slices.Concat(args[1:1+at], args[2+at:])
	cmd := app.Command(name)
	if cmd == nil {
		return nil, unknownCommand(app, name)
	}
	local := flagTable{}
	local.add(cmd.Flags)
	local.add([]cli.Flag{cli.HelpFlag})
	s := sorter{global: global, local: local, command: name}
	if err := s.sort(rest); err != nil {
		return nil, err
	}
	out := append([]string{args[0]}, s.globals...)
	out = append(append(out, name), s.locals...)
	return append(append(out, "--"), s.positional...), nil
}

// commandName returns the first argument that is neither a global flag nor its
// value, and where it stands.
func commandName(global flagTable, args []string) (string, int, error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" || !looksLikeFlag(a) {
			if a == "--" {
				return "", 0, nil
			}
			return a, i, nil
		}
		key, _, hasValue := strings.Cut(a, "=")
		spec, ok := global[key]
		if !ok {
			return "", 0, unknownFlag(key, "")
		}
		if spec.takesValue && !hasValue {
			i++
		}
	}
	return "", 0, nil
}

func looksLikeFlag(a string) bool { return len(a) > 1 && a[0] == '-' }

// sorter splits the arguments behind a command's name.
type sorter struct {
	global, local               flagTable
	command                     string
	globals, locals, positional []string
}

func (s *sorter) sort(args []string) error {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			s.positional = append(s.positional, args[i+1:]...)
			return nil
		}
		if !looksLikeFlag(a) {
			s.positional = append(s.positional, a)
			continue
		}
		n, err := s.flag(args[i:])
		if err != nil {
			return err
		}
		i += n - 1
	}
	return nil
}

// flag takes the flag at the head of args and returns how many arguments it
// used.
func (s *sorter) flag(args []string) (int, error) {
	key, value, hasValue := strings.Cut(args[0], "=")
	spec, isLocal := s.local[key]
	if !isLocal {
		var ok bool
		if spec, ok = s.global[key]; !ok {
			return 0, unknownFlag(key, s.command)
		}
	}
	used := 1
	switch {
	case !spec.takesValue && hasValue && value != "true" && value != "false":
		return 0, workspace.Fail(workspace.CodeUsage, "flag %s takes no value", key)
	case spec.takesValue && !hasValue:
		if len(args) < 2 {
			return 0, workspace.Fail(workspace.CodeUsage, "flag %s needs a value", key)
		}
		value, hasValue, used = args[1], true, 2
	}
	word := "--" + spec.name
	if hasValue {
		word += "=" + value
	}
	if isLocal {
		s.locals = append(s.locals, word)
	} else {
		s.globals = append(s.globals, word)
	}
	return used, nil
}

func unknownFlag(key, command string) error {
	e := workspace.Fail(workspace.CodeUsage, "unknown flag %s", key)
	if command == "" {
		return e.Hinted("see `winkfs --help`")
	}
	return e.Hinted("see `winkfs %s --help`; put -- before arguments that begin with a dash", command)
}

func unknownCommand(app *cli.App, name string) error {
	e := workspace.Fail(workspace.CodeUsage, "unknown command %q", name)
	if s := cli.SuggestCommand(app.Commands, name); s != "" {
		return e.Hinted("did you mean %q? `winkfs --help` lists the commands", s)
	}
	return e.Hinted("`winkfs --help` lists the commands")
}

// wantsJSON reports whether --json stands among winkfs's own arguments, for
// errors that occur before they are parsed.
func wantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

func usage(format string, args ...any) error {
	return workspace.Fail(workspace.CodeUsage, "%s", fmt.Sprintf(format, args...))
}
