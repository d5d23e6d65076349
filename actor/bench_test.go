package actor

import (
	"os"
	"testing"
)

func BenchmarkActorCached(b *testing.B) {
	r := New()
	defer r.Close()
	for b.Loop() {
		r.Actor(uint32(os.Getpid()), 0)
	}
}
