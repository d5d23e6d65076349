package lower

// fdList is a list of descriptors, each of which is in one list at most. It
// allocates nothing: descriptors come and go with nearly every request. The zero
// value is empty.
type fdList struct{ first, last *fd }

// push adds a descriptor, which is in no list, at the end.
func (l *fdList) push(f *fd) {
	f.before, f.after, f.listed = l.last, nil, true
	if l.last == nil {
		l.first = f
	} else {
		l.last.after = f
	}
	l.last = f
}

// remove takes a descriptor out and reports whether it was in.
func (l *fdList) remove(f *fd) bool {
	if !f.listed {
		return false
	}
	if f.before == nil {
		l.first = f.after
	} else {
		f.before.after = f.after
	}
	if f.after == nil {
		l.last = f.before
	} else {
		f.after.before = f.before
	}
	f.before, f.after, f.listed = nil, nil, false
	return true
}
