package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/winkfs/winkfs/fs/tree"
)

// File writes a file as it is or was at a point; of a directory the names in it,
// one a line and with a slash behind those of directories; of a symbolic link
// its target.
func (w *Workspace) File(_ context.Context, req *FileRequest, out io.Writer) (*FileInfo, error) {
	v, err := w.view(req.Point, func() (*tree.View, error) { return w.tree.Snapshot(), nil })
	if err != nil {
		return nil, err
	}
	path := trimPath(req.Path)
	it, err := v.Find(path)
	if errors.Is(err, tree.ErrNotExist) || errors.Is(err, tree.ErrNotDir) {
		return nil, Fail(CodeNothing, "show %q: there is no such file at %s", path, pointText(req.Point)).At(path)
	}
	if err != nil {
		return nil, fmt.Errorf("show %q: %w", path, err)
	}
	at := it.Stat.Attr
	info := &FileInfo{Path: path, Point: uint64(v.Seq()), Mode: fmt.Sprintf("%06o", at.Mode), Size: at.Size, Mtime: TimeOf(at.Mtime)}
	return info, writeItem(out, v, it)
}

func pointText(point string) string {
	if point == "" {
		return "present"
	}
	return point
}

func writeItem(out io.Writer, v *tree.View, it tree.Item) error {
	switch {
	case it.IsDir():
		return writeNames(out, v, it)
	case isLink(it.Stat.Attr.Mode):
		target, err := it.Readlink()
		if err == nil {
			_, err = io.WriteString(out, target)
		}
		return err
	case !isRegular(it.Stat.Attr.Mode):
		return Fail(CodeUsage, "show %q: it is neither a file, a directory nor a symbolic link", it.Path).At(it.Path)
	}
	if _, err := io.Copy(out, it.Open()); err != nil {
		return fmt.Errorf("show %q: %w", it.Path, err)
	}
	return nil
}

func writeNames(out io.Writer, v *tree.View, dir tree.Item) error {
	names, err := v.List(dir)
	if err != nil {
		return fmt.Errorf("list %q: %w", dir.Path, err)
	}
	for _, name := range names {
		it, err := v.Lookup(dir, name)
		if errors.Is(err, tree.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list %q: %w", dir.Path, err)
		}
		if it.IsDir() {
			name += "/"
		}
		if _, err := io.WriteString(out, name+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// SplitFile splits POINT:PATH. A point may have colons in it: the longest part
// that is written like one counts, else the part before the first colon is a
// checkpoint's name. ok is false if there is no path.
func SplitFile(s string) (point, path string, ok bool) {
	for i := range len(s) {
		if s[i] != ':' {
			continue
		}
		p, err := parsePoint(s[:i], time.Now())
		if err == nil && (p.kind != pointName || !ok && !strings.Contains(s[:i], "/")) && s[:i] != "exec" && s[:i] != "group" {
			point, path, ok = s[:i], s[i+1:], true
		}
	}
	return point, path, ok
}
