package actor

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCapable(t *testing.T) {
	r := New()
	defer r.Close()
	if got := r.Capable(uint32(unix.Gettid()), unix.CAP_SETUID); got != (os.Geteuid() == 0) {
		t.Errorf("of this thread: %v", got)
	}
	for _, tid := range []uint32{0, 1 << 30} {
		if r.Capable(tid, unix.CAP_SYS_ADMIN) {
			t.Errorf("thread %d is told capable", tid)
		}
	}
}

func TestEffective(t *testing.T) {
	for text, want := range map[string]uint64{
		"Name:\tx\nCapPrm:\tff\nCapEff:\t0000000000000a00\n": 0xa00,
		"Name:\tCapEff:\n": 0,
		"CapEff:\tzz\n":    0,
		"":                 0,
	} {
		if got, ok := effective([]byte(text)); got != want || ok != (want != 0) {
			t.Errorf("%q: %#x, %v", text, got, ok)
		}
	}
}

func TestInGroup(t *testing.T) {
	r := New()
	defer r.Close()
	tid := uint32(unix.Gettid())
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(groups, os.Getegid()) {
		if !r.InGroup(tid, uint32(g)) {
			t.Errorf("not in its own group %d", g)
		}
	}
	if r.InGroup(tid, 987654321) {
		t.Error("in a group that it has not")
	}
	if r.InGroup(0, uint32(os.Getegid())) || r.InGroup(1<<30, uint32(os.Getegid())) {
		t.Error("a thread that does not exist is in a group")
	}
}
