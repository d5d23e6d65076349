package coherence

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestEdits makes each kind of edit under each kind of cached state.
func TestEdits(t *testing.T) {
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	check(t, os.Mkdir(source, 0o755))
	w := e.NewWorkspace("coherence", source)
	rounds := setting(t, "COHERENCE_ROUNDS", 2)
	var all []time.Duration
	for i, ed := range edits {
		t.Run(ed.name, func(t *testing.T) {
			for j, s := range states {
				var took []time.Duration
				for k := range rounds {
					name := fmt.Sprintf("%d-%d-%d", i, j, k)
					d, err := try(source, w.Mount, name, ed, s)
					if err != nil {
						t.Errorf("with %s: %v", s.name, err)
						break
					}
					took = append(took, d)
				}
				all = append(all, took...)
				if p50 := percentile(took, 50); p50 > slow {
					t.Errorf("with %s: seen after %v, want %v at most", s.name, p50, slow)
				}
			}
		})
	}
	t.Logf("%d edits seen, p50 %v, p99 %v, max %v", len(all), percentile(all, 50), percentile(all, 99), percentile(all, 100))
}

// try makes one edit in a directory of its own and returns how long it took to
// show.
func try(source, mount, name string, ed edit, s state) (time.Duration, error) {
	lower, merged := filepath.Join(source, name), filepath.Join(mount, name)
	outside := filepath.Join(filepath.Dir(source), "outside-"+name)
	if err := first(os.Mkdir(lower, 0o755), fixture(lower, outside)); err != nil {
		return 0, err
	}
	// The new directory is an edit, too.
	if _, diff := await(func() (string, string) { return attr(merged), attr(lower) }); diff != "" {
		return 0, fmt.Errorf("the directory itself is missed: %s", diff)
	}
	want, releaseWant, err := s.hold(lower)
	defer releaseWant()
	if err != nil {
		return 0, err
	}
	got, release, err := s.hold(merged)
	defer release()
	if err != nil {
		return 0, err
	}
	both := func() (string, string) { return got(), want() }
	if _, diff := await(both); diff != "" {
		return 0, fmt.Errorf("differs before the edit: %s", diff)
	}
	if err := ed.do(lower, outside); err != nil {
		return 0, err
	}
	took, diff := await(both)
	if diff != "" {
		return 0, fmt.Errorf("missed: %s", diff)
	}
	return took, nil
}
