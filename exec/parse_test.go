package exec

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"golang.org/x/net/bpf"
)

func TestLinkRoundTrip(t *testing.T) {
	in := &message{Error: &Error{Layer: "l", Message: "m", Mend: "x", Code: 125}}
	data, err := encode(in)
	must(t, err)
	r := bytes.NewReader(append(data, data...))
	for range 2 {
		out, err := decode(r)
		if err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("got %+v, %v", out, err)
		}
	}
	if _, err := decode(r); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	data, _ := encode(&message{Exit: &exit{Code: 3}})
	f.Add(data)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(bytes.NewReader(data))
		if (m == nil) == (err == nil) {
			t.Errorf("got %v and %v", m, err)
		}
	})
}

func TestCheckNoCaps(t *testing.T) {
	good := "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n"
	tests := []struct {
		name, status string
		ok           bool
	}{
		{"none", good, true},
		{"bounding", string(bytes.Replace([]byte(good), []byte("CapBnd:\t0000000000000000"), []byte("CapBnd:\t0000000000000100"), 1)), false},
		{"missing", string(bytes.Replace([]byte(good), []byte("CapAmb"), []byte("CapXyz"), 1)), false},
		{"blank", string(bytes.Replace([]byte(good), []byte("CapAmb:\t0000000000000000"), []byte("CapAmb:\t"), 1)), false},
		{"empty", "", false},
	}
	for _, tt := range tests {
		if err := checkNoCaps(tt.status); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func TestTranslate(t *testing.T) {
	tests := []struct {
		idMap   string
		id      uint32
		outer   uint32
		initial bool
	}{
		{"         0          0 4294967295\n", 0, 0, true},
		{"         0          0 4294967295\n", 1001, 1001, true},
		{"         0       1001          1\n", 0, 1001, false},
		{"0 0 1\n", 0, 0, false},
		{"0 1000 1\n1 100000 65536\n", 5, 100004, false},
		{"", 7, 0, false},
	}
	for _, tt := range tests {
		if outer, initial := translate(tt.idMap, tt.id); outer != tt.outer || initial != tt.initial {
			t.Errorf("%q: got %d %v, want %d %v", tt.idMap, outer, initial, tt.outer, tt.initial)
		}
	}
}

func TestControllerDirs(t *testing.T) {
	v1 := "31 27 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"33 31 0:30 /docker/x /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n" +
		"34 31 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	got := controllerDirs("5:cpu,cpuacct:/a\n4:pids:/docker/x/b\n3:memory:/m\n1:name=systemd:/\n0::/u/v\n", v1)
	want := []Controller{
		{"cpu", 1, "/sys/fs/cgroup/cpu,cpuacct/a"}, {"cpuacct", 1, "/sys/fs/cgroup/cpu,cpuacct/a"}, {"pids", 1, "/sys/fs/cgroup/pids/b"},
		{"memory", 2, "/sys/fs/cgroup/unified/u/v"}, {"pids", 2, "/sys/fs/cgroup/unified/u/v"}, {"cpu", 2, "/sys/fs/cgroup/unified/u/v"},
		{"memory", 2, "/sys/fs/cgroup/unified/u"}, {"pids", 2, "/sys/fs/cgroup/unified/u"}, {"cpu", 2, "/sys/fs/cgroup/unified/u"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzHostTexts(f *testing.F) {
	f.Add("0 0 1\n", "3:pids:/x\n0::/\n", "33 31 0:30 / /p rw - cgroup cgroup rw,pids\n")
	f.Fuzz(func(t *testing.T, idMap, own, mounts string) {
		translate(idMap, 0)
		controllerDirs(own, mounts)
		counter(mounts, "oom_kill")
	})
}

func TestParentsFirst(t *testing.T) {
	got := parentsFirst([]string{"/b", "/a/c", "/a", "/b", "/a-b"})
	if want := []string{"/a", "/a-b", "/a/c", "/b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFilter runs the filter on made-up calls. bpf.VM reads big-endian, as for
// packets, so the data is laid out that way.
func TestFilter(t *testing.T) {
	vm, err := bpf.NewVM(filter())
	must(t, err)
	call := func(arch, nr uint32, args ...uint64) uint32 {
		data := make([]byte, 64)
		put := func(off int, v uint32) { copy(data[off:], []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}) }
		put(offNr, nr)
		put(offArch, arch)
		for i, a := range args {
			put(offArgs+8*i, uint32(a))
			put(offArgs+8*i+4, uint32(a>>32))
		}
		got, err := vm.Run(data)
		must(t, err)
		return uint32(got)
	}
	if got := call(auditArch+1, 0); got != kill&0xffffffff {
		t.Errorf("a foreign architecture gets %#x", got)
	}
	for _, nr := range denied {
		if got := call(auditArch, nr); got&0xffff0000 == allow {
			t.Errorf("call %d is allowed", nr)
		}
	}
	for nr := uint32(lastSyscall + 1); nr < lastSyscall+100; nr++ {
		if got := call(auditArch, nr); got&0xffff0000 == allow {
			t.Errorf("unknown call %d is allowed", nr)
		}
	}
	if got := call(auditArch, 0); got != allow {
		t.Errorf("read gets %#x", got)
	}
}
