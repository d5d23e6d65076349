package control

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/workspace"
)

// Listen makes the control socket in a state directory. The caller holds the
// workspace's lock, so a socket that is already there is a dead daemon's.
func Listen(dir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dir, workspace.SocketName)); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("remove old control socket: %w", err)
	}
	path, release, err := workspace.SocketPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on control socket: %w", err)
	}
	u := l.(*net.UnixListener)
	u.SetUnlinkOnClose(false) // the path may lean on a descriptor that is closed by then
	if err := os.Chmod(filepath.Join(dir, workspace.SocketName), 0o600); err != nil {
		u.Close()
		return nil, fmt.Errorf("protect control socket: %w", err)
	}
	return &peerListener{UnixListener: u, uid: uint32(os.Getuid())}, nil
}

// peerListener accepts connections of one user and of root only.
type peerListener struct {
	*net.UnixListener
	uid uint32
}

// Accept returns the next connection whose peer may ask.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(c); err == nil && (uid == l.uid || uid == 0) {
			return c, nil
		}
		c.Close()
	}
}

func peerUID(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask for peer: %w", err)
	}
	var cred *unix.Ucred
	var cerr error
	err = raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("ask for peer: %w", err)
	}
	return cred.Uid, nil
}
