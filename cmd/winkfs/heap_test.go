package main

import "testing"

func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 4 << 20: 100, 32 << 20: 100, 64 << 20: 50, 128 << 20: 40, 1 << 40: 40} {
		if got := garbagePercent(live); got != want {
			t.Errorf("%d bytes in use: got %d %%, want %d %%", live, got, want)
		}
	}
}
