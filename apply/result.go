package apply

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"
)

// finish fills the lists from the plan and sorts them. No list stays nil, so
// that JSON shows empty arrays.
func (res *Result) finish(p *plan) *Result {
	res.Created, res.Modified, res.Deleted = []string{}, []string{}, []string{}
	if p != nil {
		res.list(p)
	}
	for _, l := range []*[]string{&res.Created, &res.Modified, &res.Deleted} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
	res.Conflicts = append([]Conflict{}, res.Conflicts...)
	res.Skipped = append([]Skip{}, res.Skipped...)
	slices.SortFunc(res.Conflicts, func(a, b Conflict) int { return cmp.Compare(a.Path, b.Path) })
	bySkip := func(a, b Skip) int { return cmp.Compare(a.Path, b.Path) }
	slices.SortStableFunc(res.Skipped, bySkip)
	slices.SortStableFunc(res.Notes, bySkip)
	return res
}

func (res *Result) list(p *plan) {
	gone, made := make(map[key]bool), make(map[key]bool)
	for _, o := range p.Ops {
		k := key{o.Source, string(o.Path), false}
		switch o.Verb {
		case remove:
			gone[k] = true
		case put, mkdir, move:
			made[k] = true
		}
		if o.Verb == move {
			gone[key{o.Source, string(o.Now), false}] = true
		}
	}
	for _, o := range p.Ops {
		k := key{o.Source, string(o.Path), false}
		switch {
		case o.Verb == remove && !made[k]:
			res.Deleted = append(res.Deleted, k.path)
		case o.Verb == remove || o.Verb == meta && (made[k] || o.quiet()):
		case o.Verb == meta || o.Old != nil && o.Verb == put || gone[k]:
			res.Modified = append(res.Modified, k.path)
		default:
			res.Created = append(res.Created, k.path)
		}
		if o.Verb == move && !made[key{o.Source, string(o.Now), false}] {
			res.Deleted = append(res.Deleted, string(o.Now))
		}
	}
}

// quiet reports whether the op sets nothing but a directory's mtime.
func (o *op) quiet() bool {
	return o.Old != nil && o.Old.kind() == unix.S_IFDIR && o.Mode&0o777 == o.Old.Mode&0o777 && equalXattrs(o.Xattrs, o.Old.Xattrs)
}
