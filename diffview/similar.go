package diffview

// similarity returns how much of the larger side the two share, in percent.
// Only equal contents give 100.
func similarity(d *delta) int {
	if d.old.oid == d.new.oid {
		return 100
	}
	size := max(d.old.size, d.new.size)
	if size == 0 {
		return 100
	}
	return int(min(99, common(d)*100/size))
}

// common returns the number of bytes that both sides share in order: in equal
// lines, or at the ends of binary contents.
func common(d *delta) int64 {
	if d.old.large || d.new.large {
		return 0
	}
	if d.binary {
		return commonEnds(d.old.data, d.new.data)
	}
	n := d.old.size
	for _, h := range d.hunks {
		for _, e := range h.edits {
			n -= int64(len(d.a.span(e.A0, e.A1)))
		}
	}
	return n
}

func commonEnds(a, b []byte) int64 {
	n, i := min(len(a), len(b)), 0
	for i < n && a[i] == b[i] {
		i++
	}
	k := 0
	for i+k < n && a[len(a)-1-k] == b[len(b)-1-k] {
		k++
	}
	return int64(i + k)
}
