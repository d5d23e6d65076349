package journal

import (
	"errors"
	"fmt"
	"os"
)

// damaged decides what a bad frame or header means. What a crash leaves is cut
// off: the log ends there. Anything else is refused.
//
// While the machine has not lost power since the log was written, the kernel
// has every byte of every frame but perhaps the last one, which a death of the
// process may have cut. After a loss of power the frames behind the newest
// sync may be bad in any combination; each frame says up to where the log was
// durable when it was written.
func (r *replay) damaged(i int, pos int64, cause error) (done bool, err error) {
	d := r.logs[i]
	if otherFormat(cause) {
		return false, cause
	}
	bad := corruptAt(d.name, pos, r.seq+1, "%v", cause)
	if r.sameBoot && !isCut(cause) || i == 0 && pos < headerSize {
		return false, bad
	}
	proof, err := r.proof(i, pos)
	if err != nil {
		return false, err
	}
	if proof != "" {
		bad.Reason += "; " + proof
		return false, bad
	}
	if r.s.o.ReadOnly {
		return true, nil
	}
	return true, r.cut(i, pos, cause)
}

// isCut reports whether a frame or header ends too early, which is all that
// the death of a process can do to the last one.
func isCut(cause error) bool {
	return errors.Is(cause, errFrameCut) || errors.Is(cause, errHeaderCut)
}

// proof looks behind a bad place for what shows that the place was good once,
// and returns it in words.
func (r *replay) proof(i int, pos int64) (string, error) {
	for j := i; j < len(r.logs); j++ {
		found, err := r.proofIn(r.logs[j], j > i, pos+1)
		if found != "" || err != nil {
			return found, err
		}
		pos = headerSize - 1
	}
	return "", nil
}

func (r *replay) proofIn(d *dataFile, later bool, pos int64) (string, error) {
	f, err := os.Open(r.s.files.path(d))
	if err != nil {
		return "", fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	size, err := r.s.files.size(d)
	if err != nil {
		return "", fmt.Errorf("look at log: %w", err)
	}
	if _, err := readHeader(f, d, magicLog, r.s.id); err == nil && later && r.sameBoot {
		return fmt.Sprintf("the log goes on in %s", d.name), nil
	}
	lr := newLogReader(f, d.num, &r.s.id, size)
	for {
		fr, err := lr.resync(pos)
		if fr == nil || err != nil {
			return "", err
		}
		if r.sameBoot || fr.header.synced > r.seq {
			return fmt.Sprintf("a whole record follows at byte %d of %s", fr.loc.Pos, d.name), nil
		}
		pos = fr.end()
	}
}

// cut ends the log at pos of segment i and removes the segments behind it.
func (r *replay) cut(i int, pos int64, cause error) error {
	s := r.s
	for _, d := range r.logs[i+1:] {
		s.log.Warn("log segment behind a cut record is removed", "file", d.name)
		if err := s.drop(d); err != nil {
			return err
		}
	}
	d := r.logs[i]
	s.log.Warn("log is cut at its last whole record", "file", d.name, "pos", pos, "head", uint64(r.seq), "cause", cause)
	if pos < headerSize {
		r.passed = r.passed[:max(len(r.passed)-1, 0)]
		return s.drop(d)
	}
	f, err := s.openOwn(s.files.path(d))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.disk.truncate(f, pos); err != nil {
		return err
	}
	return s.disk.fsync(f)
}

// drop removes a file that holds no history.
func (s *Store) drop(d *dataFile) error {
	s.files.forget(d.num)
	return s.disk.remove(s.files.path(d))
}
