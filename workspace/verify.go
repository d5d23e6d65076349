package workspace

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/winkfs/winkfs/journal"
)

// VerifyResult is the document winkfs.verify/v1.
type VerifyResult struct {
	Schema    string   `json:"schema"`
	ID        string   `json:"id"`
	Clean     bool     `json:"clean"`
	Records   int      `json:"records"`
	Head      uint64   `json:"head"`
	DataBytes int64    `json:"data_bytes"`
	Problems  []string `json:"problems"`
	// GoodTo is the last record up to which the log is as it was written.
	GoodTo uint64 `json:"good_to"`
	// Of a repair: what was done, what is lost, and where the files as they
	// were are kept.
	Repaired []string `json:"repaired,omitempty"`
	Lost     []string `json:"lost,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
}

// Verify checks a workspace's journal, mounted or not. It reads only.
func Verify(e *Entry) (*VerifyResult, error) {
	r, err := journal.Verify(e.Dir)
	if errors.Is(err, journal.ErrNewerFormat) || errors.Is(err, journal.ErrOlderFormat) {
		return nil, journalError(e, err)
	}
	if err != nil {
		return nil, fmt.Errorf("verify workspace %s: %w", e.ID, err)
	}
	return newVerifyResult(e, r), nil
}

// Repair makes the best of a damaged journal. The files as they were are kept
// in a directory beside it, whatever is done.
func Repair(e *Entry) (*VerifyResult, error) {
	if e.Live {
		return nil, Fail(CodeFailure, "repair workspace %s: it is mounted", e.ID).Hinted("unmount it first")
	}
	r, err := journal.Repair(e.Dir, journal.Options{LockTimeout: lockWait})
	if err != nil {
		return nil, journalError(e, err)
	}
	res := newVerifyResult(e, r.Left)
	res.Repaired, res.Lost = r.Done, r.Lost
	if r.Evidence != "" {
		res.Evidence = filepath.Join(e.Dir, r.Evidence)
	}
	return res, nil
}

func newVerifyResult(e *Entry, r *journal.Report) *VerifyResult {
	res := &VerifyResult{
		Schema: "winkfs.verify/v1", ID: e.ID, Clean: len(r.Problems) == 0,
		Records: r.Records, Head: uint64(r.LastSeq), GoodTo: uint64(r.Good), DataBytes: r.DataBytes, Problems: []string{},
	}
	for _, p := range r.Problems {
		res.Problems = append(res.Problems, p.String())
	}
	return res
}
