package workspace

import (
	"testing"

	"github.com/winkfs/winkfs/policy"
)

func TestReadOnlySources(t *testing.T) {
	d := newDecider(&Config{Sources: []Source{{Host: "/a", At: "/", Mode: "rw"}, {Host: "/b", At: "in/ro", Mode: "ro"}, {Host: "/c", At: "in/ro/rw", Mode: "rw"}}})
	tests := []struct {
		op    policy.Op
		path  string
		allow bool
	}{
		{policy.OpWrite, "f", true},
		{policy.OpWrite, "in/ro/f", false},
		{policy.OpRead, "in/ro/f", true},
		{policy.OpCreate, "in/ro/x", false},
		{policy.OpCreate, "in/rox", true},
		{policy.OpCreate, "in/ro/rw/x", true},
		{policy.OpRename, "in", false},
		{policy.OpRename, "in/other", true},
		{policy.OpUnlink, "in/ro", false},
		{policy.OpSetattr, "in", true},
		{policy.OpLink, "in/ro/f", false},
	}
	for _, tt := range tests {
		got := d.Decide(&policy.Request{Op: tt.op, Path: func() string { return tt.path }})
		if (got.Verdict == policy.Allow) != tt.allow {
			t.Errorf("op %d on %s: %+v", tt.op, tt.path, got)
		}
		if got.Verdict != policy.Allow && (got.Rule == "" || got.Message == "") {
			t.Errorf("op %d on %s: a refusal without words", tt.op, tt.path)
		}
	}
	if _, ok := newDecider(&Config{Sources: []Source{{Host: "/a", At: "/", Mode: "rw"}}}).(policy.AllowAll); !ok {
		t.Error("a workspace without read-only sources asks for every access")
	}
}
