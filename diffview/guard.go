package diffview

import (
	"path"
	"strings"
	"unicode"
)

// Classes of Guarded.
const (
	ClassGit        = "git"        // a .git directory but for objects, refs and index; .gitmodules, .gitattributes
	ClassShell      = "shell"      // start-up files of shells and programs, .envrc, .npmrc
	ClassEditor     = "editor"     // tasks and settings of editors and containers
	ClassAgent      = "agent"      // settings of agents and their tool servers
	ClassCI         = "ci"         // workflows that run on a server
	ClassHook       = "hook"       // hook managers
	ClassImport     = "import"     // modules that an interpreter or a test runner loads unasked
	ClassExecutable = "executable" // a new execute bit
	ClassSetID      = "setid"      // a set-id bit
	ClassSymlink    = "symlink"    // a symbolic link that is absolute or leaves the tree
	ClassBuild      = "build"      // Makefiles, package scripts: flagged only
)

// Guarded tells whether the host would execute what the change brings, and
// which class it is of. A class with false is worth showing but needs no yes of
// its own. Paths are judged by all their components, whatever the case and
// spelling, so that nested repositories count and so does a file system that
// folds case. Both sides of a rename count.
func Guarded(name string, old, new *File) (class string, guarded bool) {
	for _, p := range paths(name, old, new) {
		if c := pathClass(p); c != "" {
			return c, true
		}
	}
	if c := fileClass(old, new); c != "" {
		return c, true
	}
	for _, p := range paths(name, old, new) {
		if buildFiles[fold(path.Base(p))] {
			return ClassBuild, false
		}
	}
	return "", false
}

func paths(name string, old, new *File) []string {
	out := []string{name}
	for _, f := range []*File{old, new} {
		if f != nil && f.Path != "" && f.Path != name {
			out = append(out, f.Path)
		}
	}
	return out
}

// fileClass judges the new side's mode and target.
func fileClass(old, new *File) string {
	switch {
	case isRegular(new) && new.Mode&0o6000 != 0:
		return ClassSetID
	case isRegular(new) && new.Mode&0o111 != 0 && !(isRegular(old) && old.Mode&0o111 != 0):
		return ClassExecutable
	case isSymlink(new) && Leaves(new.Path, new.Target):
		return ClassSymlink
	}
	return ""
}

// Leaves reports whether a symbolic link at name with this target is absolute
// or, by its text, climbs above the tree's root. A component that is not ".."
// may itself be a link, so a target that climbs after it descends counts as
// leaving too unless it starts by climbing.
func Leaves(name, target string) bool {
	if strings.HasPrefix(target, "/") {
		return true
	}
	depth := strings.Count(path.Clean(name), "/")
	descended := false
	for _, c := range strings.Split(target, "/") {
		switch {
		case c == "..":
			depth--
			if depth < 0 || descended {
				return true
			}
		case c != "" && c != ".":
			depth++
			descended = true
		}
	}
	return false
}

// pathClass judges a path by its components.
func pathClass(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = fold(parts[i])
	}
	for i, p := range parts {
		rest := parts[i+1:]
		if gitDir(p) && !gitData(rest) {
			return ClassGit
		}
		if strings.HasSuffix(p, ".git") && bareExecutes(rest) {
			return ClassGit
		}
		if c := dirClasses[p]; c != "" {
			return c
		}
		for _, pc := range prefixClasses {
			if hasPrefix(parts[i:], pc.parts) {
				return pc.class
			}
		}
	}
	return baseClass(parts)
}

func baseClass(parts []string) string {
	base := parts[len(parts)-1]
	if c := fileClasses[base]; c != "" {
		return c
	}
	if strings.HasSuffix(base, ".pth") {
		return ClassImport
	}
	// A bare repository is a directory of any name; its hooks have fixed ones.
	if len(parts) > 1 && parts[len(parts)-2] == "hooks" && gitHooks[base] {
		return ClassGit
	}
	return ""
}

func hasPrefix(parts, prefix []string) bool {
	if len(parts) < len(prefix) {
		return false
	}
	for i, p := range prefix {
		if parts[i] != p {
			return false
		}
	}
	return true
}

func gitDir(part string) bool { return part == ".git" || part == "git~1" }

// inGitDir reports whether a component of the path is a .git directory or file.
func inGitDir(name string) bool {
	for _, p := range strings.Split(name, "/") {
		if gitDir(fold(p)) {
			return true
		}
	}
	return false
}

// gitData reports whether a path below a .git directory is data that git never
// runs. objects/info/alternates leads git to other directories, so it is not.
func gitData(rest []string) bool {
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case "refs", "index":
		return true
	case "objects":
		return !(len(rest) > 1 && rest[1] == "info")
	}
	return false
}

// bareExecutes reports whether a path below NAME.git is one that git runs or
// reads settings from.
func bareExecutes(rest []string) bool {
	return len(rest) > 0 && (rest[0] == "hooks" || rest[0] == "config" || rest[0] == "config.worktree" || rest[0] == "info")
}

// fold brings a component to the form that lists are in: lower case, without
// the characters that HFS+ ignores and the endings that Windows drops.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return unicode.ToLower(unicode.SimpleFold(unicode.ToUpper(r)))
	}, s)
	if i := strings.IndexByte(s, ':'); i > 0 {
		s = s[:i]
	}
	if t := strings.TrimRight(s, ". "); t != "" {
		s = t
	}
	return s
}

func ignorable(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff
}
