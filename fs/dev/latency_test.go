package dev

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLatency plays looks of the watchdog and compares what the kernel is
// asked for.
func TestLatency(t *testing.T) {
	stream, calm := slices.Repeat([]uint64{hotRequests}, 100), slices.Repeat([]uint64{0}, 100)
	tests := []struct {
		name  string
		looks []uint64
		want  []int32
	}{
		{"nothing", calm, nil},
		{"a few requests", slices.Repeat([]uint64{hotRequests - 1}, 100), nil},
		{"one burst", append([]uint64{1000}, calm...), nil},
		{"a stream", stream, []int32{7}},
		{"a stream that ends", append(stream, calm...), []int32{7, noDemand}},
		{"pauses", slices.Repeat(append(stream, calm[:coolLooks-1]...), 3), []int32{7}},
		{"two streams", slices.Repeat(append(stream, calm[:coolLooks]...), 2), []int32{7, noDemand, 7, noDemand}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, asked := fakeLatency(t)
			defer l.close()
			for _, n := range tt.looks {
				l.look(n)
			}
			if got := asked(); !slices.Equal(got, tt.want) {
				t.Errorf("asked for %d, want %d", got, tt.want)
			}
		})
	}
}

// TestLatencyUnasked checks that nothing happens where nothing can be asked.
func TestLatencyUnasked(t *testing.T) {
	var l latency
	for range 100 {
		l.look(1000)
	}
	l.release()
	l.close()
	if l.held {
		t.Error("something is held")
	}
}

// TestLatencyGoesWithTheKernel checks that the device, where there is one,
// takes what is written.
func TestLatencyGoesWithTheKernel(t *testing.T) {
	l := openLatency()
	defer l.close()
	if l.file == nil {
		return // no right, no device or no sleep: nothing is asked for
	}
	for range hotLooks {
		l.look(hotRequests)
	}
	if !l.held {
		t.Fatal("the kernel did not take the demand")
	}
	f, err := os.Open(latencyDevice)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	if got := int32(binary.NativeEndian.Uint32(b[:])); got > l.demand {
		t.Errorf("the kernel tolerates %d us, %d were asked for", got, l.demand)
	}
}

// fakeLatency returns one that asks a file, and what it asked for so far.
func fakeLatency(t *testing.T) (*latency, func() []int32) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "device")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return &latency{file: f, demand: 7}, func() (asked []int32) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(b) >= 4; b = b[4:] {
			asked = append(asked, int32(binary.NativeEndian.Uint32(b)))
		}
		return asked
	}
}
