package posix

import (
	"fmt"
	"strings"
)

// allScripts returns the scripts: those that openScripts makes of all ways to
// open and all kinds of paths, and those written down here.
func allScripts() []script {
	all := openScripts()
	for _, text := range written {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		all = append(all, script{name: lines[0], steps: splitSteps(lines[1:])})
	}
	return append(all, renameScripts()...)
}

// splitSteps takes lines of steps apart, which ";" separates.
func splitSteps(lines []string) (steps []string) {
	for _, l := range lines {
		for step := range strings.SplitSeq(l, ";") {
			if step = strings.TrimSpace(step); step != "" {
				steps = append(steps, step)
			}
		}
	}
	return steps
}

var scriptTargets = []string{
	"foo@", "no_foo@", "rootfile@", "direct_sym@", "indirect_sym@", "pointless@", "dir@", "empty@", "direct_dir_sym@", "indirect_dir_sym@",
	"dir@/a", "dir@/pop/b", "dir@/new", "direct_dir_sym@/a", "indirect_dir_sym@/pop/b", "no_dir@/x", "foo@/x", "direct_sym@/x",
}

// before brings a target into a state before it is opened.
var scriptBefore = map[string][]string{
	"lower":     nil,
	"changed":   {"chmod %s", "utimes %s"},
	"written":   {"open %s rw w=more"},
	"unlinked":  {"unlink %s"},
	"recreated": {"unlink %s", "open %s w creat w=again"},
	"moved":     {"rename %s moved@", "rename moved@ %s"},
	"linked":    {"link %s linked@"},
	"other dir": {"rename dir@ dir@-away", "mkdir dir@", "open dir@/a w creat w=fresh"},
}

// openScripts opens each target in each state twice in each way.
func openScripts() (all []script) {
	modifiers := []string{"", "trunc", "creat", "creat trunc", "creat excl", "creat excl trunc", "dir", "nofollow"}
	for _, target := range scriptTargets {
		for _, how := range []string{"r", "w", "rw", "append", "rappend"} {
			for _, with := range modifiers {
				for state, before := range scriptBefore {
					s := script{name: strings.Join([]string{"open", target, how, with, state}, " ")}
					for _, b := range before {
						s.steps = append(s.steps, strings.ReplaceAll(b, "%s", target))
					}
					for _, who := range []string{"bin ", ""} {
						for _, data := range []string{"shark", "fish"} {
							write := ""
							if how != "r" {
								write = "w=" + data
							}
							s.steps = append(s.steps, fmt.Sprintf("%sopen %s~ %s %s %s", who, target, how, with, write), "open "+target+"~ r", "stat "+target+"~")
						}
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// renameScripts renames, links and exchanges each kind of file over each kind,
// and looks what both names are then.
func renameScripts() (all []script) {
	paths := []string{"foo@", "no_foo@", "direct_sym@", "pointless@", "dir@", "empty@", "direct_dir_sym@", "dir@/pop", "dir@/pop/b", "dir@-new", "foo@-new"}
	fresh := []string{"mkdir dir@-new", "open dir@-new/x w creat w=new", "open foo@-new w creat w=new"}
	for _, call := range []string{"rename", "link", "linkfollow", "exchange"} {
		for _, a := range paths {
			for _, b := range paths {
				s := script{name: strings.Join([]string{call, a, b}, " "), steps: fresh}
				for _, step := range []string{"A~ B~", "A~ B~", "B~ A~", "A B", "B A"} {
					s.steps = append(s.steps[:len(s.steps):len(s.steps)], call+" "+strings.NewReplacer("A", a, "B", b).Replace(step))
					for _, p := range []string{a, b} {
						s.steps = append(s.steps, "open "+p+"~ r", "list "+p+"~", "readlink "+p)
					}
				}
				for _, p := range []string{a, b} {
					s.steps = append(s.steps, "unlink "+p+"~", "rmdir "+p+"~", "mkdir "+p+"~", "rmtree "+p, "mkdir "+p+"~", "list "+p, "rmdir "+p+"~", "open "+p+"~ rw creat w=end")
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// written are scripts by hand: the name, then the steps.
var written = []string{
	`rename a directory and back
	rename dir@~ no_dir@~; rename dir@~ no_dir@~; list no_dir@; rename no_dir@~ dir@~; list dir@; open dir@/pop/b r; rmdir dir@~; unlink dir@~; list dir@`,
	`rename a directory twice
	rename dir@~ no_dir@~; rename no_dir@~ no_dir@x~; open no_dir@x/a rw w=aaaa; rename no_dir@x~ dir@~; open dir@/a r; rename dir@~ empty@~; list empty@; rename empty@~ dir@~; list dir@/pop`,
	`rename a directory into itself
	rename dir@ dir@/pop/c/d; rename dir@/pop dir@; rename dir@ dir@/pop; rename dir@ dir@~; list dir@/pop`,
	`rename over a removed directory
	rmdir dir@/pop/c; mkdir dir@-new; open dir@-new/a w creat w=aaaa; rename dir@-new~ dir@/pop/c~; open dir@/pop/c/a r; rmtree dir@; rename empty@~ dir@~; list dir@; open dir@/a r; open dir@/pop/b r`,
	`the same names in another directory
	mkdir dir@-new; mkdir dir@-new/pop; open dir@-new/pop/b w creat w=aaaa; rename dir@-new~ dir@~; rmtree dir@; rename dir@-new~ dir@~; open dir@/pop/b r; open dir@/pop/c r; open dir@/a r; list dir@/pop`,
	`move a directory out and make it anew
	rename dir@/pop empty@/pop; mkdir dir@/pop; list dir@/pop; open dir@/pop/b r; open dir@/pop/b w creat excl w=mine; open empty@/pop/b r; rename empty@/pop/c dir@/pop/c; list dir@/pop; list empty@/pop; rmtree dir@; list empty@`,
	`move children between directories
	rename dir@/a empty@/a; rename dir@/pop/b dir@/a; open dir@/a r; rename dir@/a dir@/pop/b; open dir@/pop/b r; rename empty@/a dir@/a; list dir@; rmdir empty@~; rmdir empty@~`,
	`remove a tree and make it again
	rmtree dir@; list dir@; mkdir dir@~; list dir@~; open dir@/a r; mkdir dir@/pop~; open dir@/pop/b r; list dir@/pop; open dir@/pop/b w creat w=b; rmtree dir@; mkdir dir@; list dir@`,
	`rmdir of each kind
	rmdir foo@~; rmdir no_foo@~; rmdir direct_sym@~; rmdir pointless@~; rmdir dir@~; rmdir direct_dir_sym@~; rmdir empty@~; rmdir empty@~; mkdir empty@~; mkdir empty@~; rmdir empty@~; rmdir no_dir@/x~; rmdir foo@/x~`,
	`unlink of each kind
	unlink foo@~; unlink foo@~; unlink direct_sym@~; unlink indirect_sym@~; unlink pointless@~; unlink dir@~; unlink empty@~; unlink direct_dir_sym@~; unlink indirect_dir_sym@~; unlink no_foo@~; unlink no_dir@/x~; unlink rootfile@/x; unlink dir@/a~; unlink dir@/pop/b~`,
	`mkdir of each kind
	mkdir foo@~; mkdir no_foo@~; mkdir no_foo@~; mkdir direct_sym@~; mkdir pointless@~; mkdir dir@~; mkdir direct_dir_sym@~; mkdir no_dir@/x~; mkdir foo@/x; mkdir dir@/new~; mkdir dir@/pop/c/x~; mkdir direct_dir_sym@/y~; list dir@`,
	`mkdir where something was
	unlink foo@; mkdir foo@~; list foo@; rmdir foo@~; open foo@ w creat w=f; open direct_sym@ r; rmdir empty@; open empty@ w creat w=e; unlink empty@; mkdir empty@~; list empty@; rmtree dir@; symlink dir@ empty@; list dir@; unlink dir@; mkdir dir@; list dir@`,
	`truncate
	truncate foo@~ 0; truncate foo@~ 100; open foo@ r; truncate direct_sym@~ 4; open foo@ r; truncate indirect_sym@~ 29; truncate pointless@~ 3; truncate no_foo@~ 3; truncate dir@~ 3; truncate direct_dir_sym@~ 3; truncate foo@~ -1; truncate dir@/pop/b~ 2; open dir@/pop/b r; bin truncate rootfile@~ 3; open rootfile@ r`,
	`truncate after each change
	chmod rootfile@; truncate rootfile@ 5; open rootfile@ r; truncate rootfile@ 12; open rootfile@ rw w=Z; rename rootfile@ no_foo@; truncate no_foo@ 3; open pointless@ r; link no_foo@ rootfile@; truncate rootfile@ 1; open no_foo@ r`,
	`readlink
	readlink foo@~; readlink direct_sym@~; readlink indirect_sym@~; readlink pointless@~; readlink dir@~; readlink direct_dir_sym@~; readlink indirect_dir_sym@~; readlink no_foo@~; readlink empty@~; readlink no_dir@/x; lutimes direct_sym@; readlink direct_sym@; rename direct_sym@ no_foo@; readlink no_foo@; readlink direct_sym@`,
	`hard links
	link foo@~ no_foo@~; open foo@ r; open no_foo@ rw w=shark; open foo@ r; open pointless@ r; unlink foo@; open no_foo@ r; open direct_sym@ r; link no_foo@ foo@; open direct_sym@ append w=fish; open no_foo@ r; chmod foo@; stat no_foo@`,
	`hard links that can't be
	link dir@~ no_foo@~; link foo@~ dir@~; link foo@~ foo@~; link foo@~ rootfile@~; link no_foo@~ foo@~; link direct_sym@~ pointless@~; link empty@ dir@/x; link foo@ no_dir@/x; link foo@ rootfile@/x; link dir@/a dir@/a~`,
	`hard links of symbolic links
	link direct_sym@~ no_foo@~; readlink no_foo@; open no_foo@ r; link pointless@~ no_dir@~; open no_dir@ r; open pointless@ r; linkfollow indirect_sym@~ dir@/l; open dir@/l rw w=shark; open foo@ r; readlink dir@/l; link direct_dir_sym@~ empty@/l; list empty@/l~`,
	`hard link, rename over the other name
	link foo@ no_foo@; rename foo@ no_foo@; stat foo@; stat no_foo@; rename no_foo@ rootfile@; open rootfile@ r; open foo@ rw w=shark; open rootfile@ r; link foo@ dir@/x; rename dir@ no_dir@; open no_dir@/x r; unlink no_dir@/x; unlink foo@; open rootfile@ r`,
	`impermissible
	bin open rootfile@~ w trunc; bin open rootfile@~ w; bin open rootfile@~ append; bin open rootfile@~ r; bin truncate rootfile@~ 4; bin utimes rootfile@~; bin chmod rootfile@~; bin unlink rootfile@~; bin rename rootfile@~ no_foo@~; bin link rootfile@~ no_foo@~; bin mkdir no_dir@~; bin rmdir empty@~; bin symlink no_foo@ foo@; bin open no_foo@~ w creat
	open rootfile@~ w w=shark; bin open rootfile@~ r; bin open rootfile@~ w trunc; chmod rootfile@; bin open rootfile@~ r; bin open foo@ rw w=fish; bin chmod foo@; bin utimes foo@; bin truncate foo@ 2; open foo@ r; bin open dir@/pop/b w; bin open dir@/x w creat`,
	`utimes and chmod of each kind
	utimes foo@~; utimes direct_sym@~; utimes pointless@~; utimes dir@~; utimes direct_dir_sym@~; lutimes pointless@~; lutimes direct_sym@~; utimes no_foo@~; chmod foo@~; chmod indirect_sym@~; chmod pointless@~; chmod dir@~; chmod no_foo@~; stat foo@; stat dir@; bin list dir@; bin open dir@/a r`,
	`many renames in one place
	rename foo@ no_foo@; rename rootfile@ foo@; rename no_foo@ rootfile@; open foo@ r; open rootfile@ r; rename dir@ no_dir@; rename empty@ dir@; rename no_dir@ empty@; list dir@; list empty@; rename direct_sym@ no_foo@; rename indirect_sym@ direct_sym@; rename no_foo@ indirect_sym@; open direct_sym@ r; open indirect_sym@ r; exchange dir@ empty@; exchange foo@ direct_sym@; readlink foo@; open direct_sym@ r; list dir@`,
	`rename a mass of names to and fro
	rename foo@ x1-@; rename x1-@ x2-@; rename x2-@ x3-@; rename x3-@ dir@/x; rename dir@/x dir@/pop/x; rename dir@/pop/x dir@/pop/c/x; rename dir@/pop/c/x foo@; open foo@ r; open direct_sym@ r; list dir@/pop/c; open foo@ append w=end; rename foo@ dir@/a; open dir@/a r`,
	`symbolic links over what was
	unlink foo@; symlink foo@ rootfile@; open direct_sym@~ rw w=shark; open rootfile@ r; rmtree dir@; symlink dir@ empty@; open direct_dir_sym@/x w creat w=x; list empty@; open indirect_dir_sym@/x r; unlink dir@~; symlink dir@ dir@; list dir@; open direct_dir_sym@/x r; unlink dir@; unlink pointless@; symlink pointless@ pointless@; open pointless@~ r creat`,
	`special files
	mkfifo no_foo@~; mkfifo foo@~; unlink foo@; mkfifo foo@; stat foo@; stat direct_sym@; rename foo@ dir@/a; stat dir@/a; open dir@/a rw; rename dir@/a dir@/pop/b; unlink dir@/pop/b; open dir@/pop/b r; link no_foo@ foo@`,
	`a directory's own entries while it moves
	open dir@/pop/new w creat w=n; rename dir@/pop dir@/pop2; unlink dir@/pop2/b; rename dir@ no_dir@; list no_dir@/pop2; open no_dir@/pop2/new r; open no_dir@/pop2/b r; mkdir dir@; rename no_dir@/pop2 dir@/pop; list dir@/pop; open dir@/pop/b w creat w=b; list no_dir@; rmtree no_dir@; list dir@; open dir@/pop/b r`,
	`empty directories over and under
	rename empty@~ dir@/pop/c~; list dir@/pop; rename dir@/pop/c~ empty@~; list dir@/pop; rename dir@/pop~ empty@~; list empty@; mkdir dir@/pop; rename empty@~ dir@/pop~; list dir@/pop; rename dir@/pop/b dir@/pop/c; rename dir@/pop/c dir@/pop/b; rmdir dir@/pop/c~; rename dir@/pop/c empty@`,
}
