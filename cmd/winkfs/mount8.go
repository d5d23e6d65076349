package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// mountForm rewrites the arguments of mount(8), `winkfs SOURCE MOUNTPOINT
// [-sfnvrw] [-N NS] [-o a,b] [-t TYPE]`, into those of the mount command. Other
// arguments come back as they are. As a mount helper (mount.fuse.winkfs) the
// program knows no other form.
func mountForm(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	helper := strings.HasPrefix(filepath.Base(args[0]), "mount.")
	m := mount8Args{}
	if !m.parse(args[1:]) || !helper && !m.plausible(app) {
		return args
	}
	out := []string{args[0], "mount", "--mount8"}
	for _, o := range m.options {
		out = append(out, "-o", o)
	}
	if m.fake {
		out = append(out, "--fake")
	}
	return append(append(out, "--"), m.places...)
}

// mount8Args are the arguments of a mount helper.
type mount8Args struct {
	places  []string // source and mount point
	options []string
	fake    bool
}

// parse reads the arguments. It reports false when they are not of the form.
func (m *mount8Args) parse(args []string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !looksLikeFlag(a):
			m.places = append(m.places, a)
		case a == "-o" || a == "-t" || a == "-N":
			if i++; i == len(args) {
				return false
			}
			if a == "-o" {
				m.options = append(m.options, args[i])
			}
		case strings.HasPrefix(a, "-o"):
			m.options = append(m.options, a[len("-o"):])
		case strings.Trim(a[1:], "sfnvrw") == "":
			m.letters(a[1:])
		default:
			return false
		}
	}
	return len(m.places) == 2
}

// letters takes flags without a value. -s, -n and -v mean nothing here.
func (m *mount8Args) letters(flags string) {
	m.fake = m.fake || strings.Contains(flags, "f")
	if strings.Contains(flags, "r") {
		m.options = append(m.options, "ro")
	}
}

// plausible tells the form from a mistyped command.
func (m *mount8Args) plausible(app *cli.App) bool {
	if app.Command(m.places[0]) != nil {
		return false
	}
	if len(m.options) > 0 {
		return true
	}
	return strings.Contains(m.places[0], "/") && strings.HasPrefix(m.places[1], "/")
}

// splitWords cuts a list at a separator that has no backslash before it, which
// is how mount(8) writes a separator that belongs to a path.
func splitWords(list string, sep byte) []string {
	var words []string
	begin := 0
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '\\':
			i++
		case sep:
			words = append(words, list[begin:i])
			begin = i + 1
		}
	}
	return append(words, list[begin:])
}

// unescape takes away the backslashes.
func unescape(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '\\' && i+1 < len(word) {
			i++
		}
		b.WriteByte(word[i])
	}
	return b.String()
}

// ignoredWords are mount(8)'s words that mean nothing here.
var ignoredWords = []string{
	"rw", "dev", "suid", "exec", "nofail", "fail", "noauto", "auto", "user", "nouser", "users", "group", "owner", "_netdev", "defaults",
	"relatime", "norelatime", "strictatime", "nostrictatime", "noatime", "atime", "nodiratime", "diratime", "lazytime", "nolazytime",
	"async", "sync", "dirsync", "noiversion", "iversion", "silent", "loud", "mand", "nomand", "workdir", "comment",
}

// words takes the options of -o.
func (o *mountOptions) words(e *env) error {
	for _, list := range o.options {
		for _, w := range splitWords(list, ',') {
			if err := o.word(e, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *mountOptions) word(e *env, w string) error {
	key, val, _ := strings.Cut(w, "=")
	switch key {
	case "ro":
		o.readOnly = true
	case "nosuid":
		o.noSuid = true
	case "nodev":
		o.noDev = true
	case "noexec":
		o.noExec = true
	case "allow_other":
		o.allowOther = true
	case "config":
		o.config = unescape(val)
	case "name":
		o.name = val
	case "profile":
		o.profile = val
	case "upperdir":
		o.upper = unescape(val)
		e.globals.stateDir = o.upper
	case "lowerdir":
		for _, dir := range splitWords(val, ':') {
			if dir == "" {
				return usage("-o lowerdir: an empty directory name in %q", val)
			}
			o.lower = append(o.lower, unescape(dir))
		}
	default:
		if w != "" && !strings.HasPrefix(w, "x-") && !strings.HasPrefix(w, "X-") && !slices.Contains(ignoredWords, key) {
			return usage("-o: unknown option %q", w)
		}
	}
	return nil
}
