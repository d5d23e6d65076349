package attack

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { harmless["network"] = lookForNetwork }

// lookForNetwork looks for interfaces and tries the addresses: a TCP port and an
// abstract socket of the host's.
func lookForNetwork(args []string) {
	ifs, err := net.Interfaces()
	if err != nil {
		ifs = nil // no netlink at all is fine
	}
	for _, i := range ifs {
		if i.Flags&net.FlagLoopback == 0 {
			breach("interface %s", i.Name)
		}
	}
	dial := func(network, addr string) {
		c, err := net.DialTimeout(network, addr, 2*time.Second)
		if err == nil {
			c.Close()
			breach("can connect to %s %s", network, addr)
		}
	}
	dial("tcp", args[0])
	dial("unix", args[1])
	for _, addr := range []string{"1.1.1.1:53", "169.254.169.254:80", "[2606:4700:4700::1111]:53"} {
		dial("tcp", addr)
	}
	families := map[string]int{"vsock": unix.AF_VSOCK, "packet": unix.AF_PACKET, "bluetooth": unix.AF_BLUETOOTH, "alg": unix.AF_ALG}
	for name, family := range families {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			if fd, err := unix.Socket(family, kind, 0); err == nil {
				unix.Close(fd)
				breach("can make a socket of family %s", name)
			}
		}
	}
}

func TestNoNetwork(t *testing.T) {
	j := newJail(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	abstract, err := net.Listen("unix", "@winkfs-attack-"+strings.ReplaceAll(j.Dir, "/", "-")[len(j.Dir)-20:])
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	args := []string{tcp.Addr().String(), abstract.Addr().String()}
	out := onHost(t, "network", args...)
	for _, want := range []string{"connect to tcp 127", "connect to unix"} {
		if !strings.Contains(out, want) {
			t.Fatalf("on the host the probe does not find %q:\n%s", want, out)
		}
	}
	j.probe("network", args...)
}

// TestSocketInTheSource binds on the host in the source: the file shows in
// the workspace, but nobody answers there.
func TestSocketInTheSource(t *testing.T) {
	j := newJail(t)
	t.Chdir(j.Source) // socket addresses hold 108 bytes
	l, err := net.Listen("unix", "host.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	j.probe("network", "127.0.0.1:1", "/workspace/host.sock")
}
