package coherence

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const (
	// missed is how long a difference may last before it counts as one for good.
	missed = 3 * time.Second
	// slow is what the median of each kind of edit must stay below.
	slow = 100 * time.Millisecond
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setting returns a number from the environment.
func setting(t testing.TB, name string, usual int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	check(t, err)
	return n
}

// await looks until got equals want and returns how long that took.
func await(look func() (got, want string)) (took time.Duration, last string) {
	begin := time.Now()
	for {
		got, want := look()
		took = time.Since(begin)
		if got == want {
			return took, ""
		}
		if took > missed {
			return took, fmt.Sprintf("mount:\n%s\nsource:\n%s", got, want)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// percentile returns the p-th percentile of the durations, which it sorts.
func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, len(d)*p/100)].Round(10 * time.Microsecond)
}
