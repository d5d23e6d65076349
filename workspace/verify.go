package workspace

import (
	"errors"
	"fmt"

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

// Repair rebuilds the database of a workspace from its log, which is the
// authority. The old database is kept beside it.
func Repair(e *Entry) (*VerifyResult, error) {
	if e.Live {
		return nil, Fail(CodeFailure, "repair workspace %s: it is mounted", e.ID).Hinted("unmount it first")
	}
	r, err := journal.Rebuild(e.Dir, journal.Options{LockTimeout: lockWait})
	if err != nil {
		return nil, journalError(e, err)
	}
	return newVerifyResult(e, r), nil
}

func newVerifyResult(e *Entry, r *journal.Report) *VerifyResult {
	res := &VerifyResult{
		Schema: "winkfs.verify/v1", ID: e.ID, Clean: len(r.Problems) == 0,
		Records: r.Records, Head: uint64(r.LastSeq), DataBytes: r.DataBytes, Problems: []string{},
	}
	for _, p := range r.Problems {
		res.Problems = append(res.Problems, p.String())
	}
	return res
}
