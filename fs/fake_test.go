package fs

import (
	"slices"
	"time"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// fakeTree answers what the test put into it and keeps what it was asked last.
// Operations that it does not have panic by the nil interface.
type fakeTree struct {
	Tree
	stat    tree.Stat
	err     error
	written int // of Write, if > 0
	value   []byte
	names   []string
	entries []tree.Dirent
	after   error // of Readdir, behind the entries

	req    tree.Request
	id     journal.NodeID
	name   string
	set    tree.SetAttr
	access tree.Access // Open
}

func (f *fakeTree) asked(r *tree.Request, id journal.NodeID, name string) (tree.Stat, error) {
	f.req, f.id, f.name = *r, id, name
	return f.stat, f.err
}

func (f *fakeTree) SetNotifier(tree.Notifier) {}

func (f *fakeTree) Ttl(journal.NodeID) time.Duration { return 2*time.Hour + 5 }

func (f *fakeTree) Lookup(r *tree.Request, p journal.NodeID, name string) (tree.Stat, error) {
	return f.asked(r, p, name)
}

func (f *fakeTree) Getattr(r *tree.Request, id journal.NodeID) (tree.Stat, error) {
	return f.asked(r, id, "")
}

func (f *fakeTree) Setattr(r *tree.Request, id journal.NodeID, a tree.SetAttr) (tree.Stat, error) {
	f.set = a
	return f.asked(r, id, "")
}

func (f *fakeTree) Create(r *tree.Request, p journal.NodeID, name string, _ uint32) (tree.Stat, error) {
	return f.asked(r, p, name)
}

func (f *fakeTree) Open(r *tree.Request, id journal.NodeID, a tree.Access) error {
	f.req, f.id, f.access = *r, id, a
	return f.err
}

func (f *fakeTree) Read(r *tree.Request, id journal.NodeID, p []byte, off int64) (int, error) {
	f.req, f.id = *r, id
	return copy(p, f.value[min(off, int64(len(f.value))):]), f.err
}

func (f *fakeTree) Write(r *tree.Request, id journal.NodeID, _ []byte, _ int64) (int, error) {
	f.req, f.id = *r, id
	return f.written, f.err
}

func (f *fakeTree) Getxattr(r *tree.Request, id journal.NodeID, name string) ([]byte, error) {
	_, err := f.asked(r, id, name)
	return f.value, err
}

func (f *fakeTree) Setxattr(r *tree.Request, id journal.NodeID, name string, v []byte, _ uint32) error {
	f.value = slices.Clone(v)
	_, err := f.asked(r, id, name)
	return err
}

func (f *fakeTree) Listxattr(r *tree.Request, id journal.NodeID) ([]string, error) {
	_, err := f.asked(r, id, "")
	return f.names, err
}

func (f *fakeTree) Readdir(r *tree.Request, id journal.NodeID, cookie uint64, plus bool, emit func(*tree.Dirent) bool) error {
	for i := range f.entries {
		if e := &f.entries[i]; e.Cookie > cookie && !emit(e) {
			return nil
		}
	}
	return f.after
}
