package model

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample is what the daemon holds at one time.
type sample struct {
	anon    int // bytes of memory that no file backs
	file    int // bytes of mapped files: the program and the database, which the kernel takes back at will
	files   int // open descriptors
	threads int
}

// watchDaemon takes samples until the soak is over.
func (s *soak) watchDaemon() []sample {
	pid := s.w.Status().PID
	var all []sample
	for s.pause(min(2*time.Second, s.length/50)) {
		one, err := sampleOf(pid)
		if err != nil {
			s.end("daemon", err)
			return all
		}
		all = append(all, one)
	}
	return all
}

func sampleOf(pid int) (one sample, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return one, fmt.Errorf("look at the daemon: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(value, "kB")))
		switch name {
		case "RssAnon":
			one.anon = n << 10
		case "RssFile":
			one.file = n << 10
		case "Threads":
			one.threads = n
		}
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return one, fmt.Errorf("look at the daemon: %w", err)
	}
	one.files = len(fds)
	return one, nil
}

// What a daemon may hold more in the last quarter of a soak than in the second:
// the median of its samples, in percent and on top of that.
const (
	growPercent = 25
	growMemory  = 32 << 20
	growFiles   = 256
	growThreads = 16
)

// growth compares the last quarter of the samples with the second, as caches
// fill in the first. It returns what it saw and what has grown.
func growth(all []sample) (seen, grown []string) {
	quarter := func(i int, of func(sample) int) int {
		var values []int
		for _, one := range all[len(all)*i/4 : len(all)*(i+1)/4] {
			values = append(values, of(one))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, c := range []struct {
		what       string
		unit, more int
		of         func(sample) int
	}{
		{"MiB of memory", 1 << 20, growMemory, func(s sample) int { return s.anon }},
		{"descriptors", 1, growFiles, func(s sample) int { return s.files }},
		{"threads", 1, growThreads, func(s sample) int { return s.threads }},
	} {
		most := c.of(slices.MaxFunc(all, func(a, b sample) int { return c.of(a) - c.of(b) }))
		early, late := quarter(1, c.of), quarter(3, c.of)
		text := fmt.Sprintf("%s: %d, %d, %d, %d by quarter, %d at most", c.what,
			quarter(0, c.of)/c.unit, early/c.unit, quarter(2, c.of)/c.unit, late/c.unit, most/c.unit)
		seen = append(seen, text)
		if late > early+early*growPercent/100+c.more {
			grown = append(grown, text)
		}
	}
	return seen, grown
}

// checkGrowth fails the test if the daemon holds ever more.
func checkGrowth(t *testing.T, all []sample) {
	t.Helper()
	if len(all) < 4 {
		t.Errorf("%d samples of the daemon are too few to compare", len(all))
		return
	}
	seen, grown := growth(all)
	t.Logf("the daemon's %s", strings.Join(seen, "; "))
	t.Logf("and %d MiB of mapped files at the end, %d at the beginning", all[len(all)-1].file>>20, all[0].file>>20)
	if len(grown) > 0 {
		t.Errorf("the daemon grows: %s", strings.Join(grown, "; "))
	}
}

// TestGrowthIsNoticed proves that what grows by little all the time is noticed.
func TestGrowthIsNoticed(t *testing.T) {
	run := func(memory, files, threads int) []sample {
		all := make([]sample, 1200)
		for i := range all {
			all[i] = sample{anon: 60<<20 + i*memory, files: 400 + i*files, threads: 10 + i*threads}
		}
		return all
	}
	for _, c := range []struct{ memory, files, threads, want int }{{}, {memory: 128 << 10, want: 1}, {files: 1, want: 1}, {1 << 20, 2, 1, 3}} {
		if _, grown := growth(run(c.memory, c.files, c.threads)); len(grown) != c.want {
			t.Errorf("growing by %+v a second: noticed %q", c, grown)
		}
	}
}
