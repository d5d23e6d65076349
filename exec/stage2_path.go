package exec

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lookPath finds the command as execvp(3) does: by the payload's PATH, inside,
// with the payload's rights.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	var found error
	for _, dir := range filepath.SplitList(pathOf(env)) {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if e := asError(err); e.Code == ExitInvoke && found == nil {
			found = e
		}
	}
	if found != nil {
		return "", found
	}
	return "", &Error{Layer: layerCommand, Message: name + ": command not found", Code: ExitNotFound, cause: unix.ENOENT}
}

// pathOf gives the last PATH of an environment.
func pathOf(env []string) string {
	path := ""
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	return path
}

// executable says why a file can't be executed, as *Error.
func executable(file string) error {
	var st unix.Stat_t
	err := unix.Stat(file, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = unix.EACCES
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = unix.EISDIR
		}
	}
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, 0)
	}
	if err == nil {
		return nil
	}
	code := ExitInvoke
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		code = ExitNotFound
	}
	return &Error{Layer: layerCommand, Message: fmt.Sprintf("%s: %v", file, err), Code: code, cause: err}
}
