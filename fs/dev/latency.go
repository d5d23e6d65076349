package dev

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// latencyDevice takes what a process tolerates as the time that an idle CPU
	// needs to go on, as a native int32 of microseconds, while it is open:
	// Documentation/power/pm_qos_interface.rst.
	latencyDevice = "/dev/cpu_dma_latency"
	// idleDriver names what puts idle CPUs to sleep.
	idleDriver = "/sys/devices/system/cpu/cpuidle/current_driver"

	// noDemand is the kernel's own value, PM_QOS_CPU_LATENCY_DEFAULT_VALUE.
	noDemand int32 = 2_000_000_000
	// lightSleep lets CPUs sleep as lightly as hardware can, a virtual one not
	// at all: its sleep is a call of the hypervisor, which takes far longer
	// than a request and says nothing of it.
	lightSleep, noSleep int32 = 2, 0
	// maxAwake is the most CPUs that are kept from sleeping altogether: the
	// demand is on all of them, and each that is idle spins.
	maxAwake = 8

	// hotRequests within one look of the watchdog are a stream of requests:
	// 8,000 a second, each of which somebody waits for.
	hotRequests = 16
	// hotLooks such looks in a row begin to keep CPUs awake, coolLooks others
	// end it.
	hotLooks, coolLooks = 2, 10
)

// latency keeps idle CPUs from sleeping deeply while requests come fast. Each
// request wakes the reader and each reply the client, on different CPUs mostly;
// waking one that sleeps takes a virtual machine 20 to 50 microseconds, twice a
// request, where the rest takes 10. Only root may ask for that, elsewhere this
// does nothing. Its methods are the watchdog's alone.
type latency struct {
	file      *os.File // nil if nothing can be asked for
	demand    int32
	hot, cool int // looks in a row
	held      bool
}

// openLatency returns a latency that demands nothing yet.
func openLatency() *latency {
	driver, err := os.ReadFile(idleDriver)
	if err != nil {
		return &latency{}
	}
	l := &latency{demand: lightSleep}
	switch strings.TrimSpace(string(driver)) {
	case "none":
		return l
	case "haltpoll":
		l.demand = noSleep
		if runtime.NumCPU() > maxAwake {
			return l
		}
	}
	fd, err := unix.Open(latencyDevice, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return l
	}
	l.file = os.NewFile(uintptr(fd), latencyDevice)
	if !l.ask(noDemand) { // opening it asks for as little
		l.close()
	}
	return l
}

// look is told how many requests came since the last look.
func (l *latency) look(requests uint64) {
	if l.file == nil {
		return
	}
	if requests >= hotRequests {
		l.hot, l.cool = l.hot+1, 0
	} else {
		l.hot, l.cool = 0, l.cool+1
	}
	switch {
	case !l.held && l.hot >= hotLooks:
		l.held = l.ask(l.demand)
	case l.held && l.cool >= coolLooks:
		l.release()
	}
}

func (l *latency) release() {
	if l.held {
		l.ask(noDemand)
		l.held = false
	}
}

// ask reports whether the kernel took it.
func (l *latency) ask(us int32) bool {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(us))
	_, err := l.file.Write(b[:])
	return err == nil
}

// close ends every demand.
func (l *latency) close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file, l.held = nil, false
	}
}
