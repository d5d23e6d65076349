package journal

// hold keeps a point of history from being trimmed.
type hold struct{ at Seq }

// Hold keeps the point at and what is needed to return to it until release is
// called: for a view of the past that is in use. It fails with a *TrimmedError
// if history begins later.
func (s *Store) Hold(at Seq) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at < s.trimmed {
		return nil, &TrimmedError{Seq: at + 1, First: s.trimmed + 1}
	}
	h := &hold{at}
	if s.holds == nil {
		s.holds = map[*hold]struct{}{}
	}
	s.holds[h] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.holds, h)
	}, nil
}
