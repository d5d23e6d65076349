package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fusermountTimeout bounds a run of the helper, which normally takes
// milliseconds.
const fusermountTimeout = 30 * time.Second

// mountFusermount lets the setuid helper open the device and mount it, and
// receives the descriptor over a socket, as fusermount3(1)'s callers do.
func mountFusermount(dir string, o options) (int, error) {
	if err := unix.Access(devicePath, unix.F_OK); err != nil {
		return -1, deviceError(err)
	}
	ours, theirs, err := socketpair()
	if err != nil {
		return -1, err
	}
	defer ours.Close()
	defer theirs.Close()
	text, err := fusermount(theirs, "-o", fusermountData(o), "--", dir)
	if err != nil {
		return -1, fusermountError(dir, text, err)
	}
	return receiveFD(ours)
}

// fusermountData is the helper's -o argument.
func fusermountData(o options) string {
	data := []string{
		word(o.suid, "suid", "nosuid"), word(o.dev, "dev", "nodev"), "default_permissions", "subtype=winkfs",
		"fsname=" + escapeOption(o.source),
		fmt.Sprintf("max_read=%d", MaxWrite),
	}
	if o.readOnly {
		data = append(data, "ro")
	}
	if o.noExec {
		data = append(data, "noexec")
	}
	if o.allowOther {
		data = append(data, "allow_other")
	}
	return strings.Join(data, ",")
}

func word(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

// escapeOption keeps commas and backslashes from ending the option.
func escapeOption(s string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s)
}

// fusermount runs the helper and returns what it said on standard error. comm,
// if set, is its end of the socket.
func fusermount(comm *os.File, args ...string) (string, error) {
	bin, err := fusermountPath()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fusermountTimeout)
	defer cancel()
	var stderr bytes.Buffer
	cmd := osexec.CommandContext(ctx, bin, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.Stderr = &stderr
	if comm != nil {
		cmd.ExtraFiles = []*os.File{comm}
		cmd.Env = append(cmd.Env, "_FUSE_COMMFD=3")
	}
	err = cmd.Run()
	return strings.TrimSpace(stderr.String()), err
}

// fusermountPath finds the helper; version 2's does as well.
func fusermountPath() (string, error) {
	for _, name := range []string{"fusermount3", "/usr/bin/fusermount3", "/bin/fusermount3", "fusermount", "/bin/fusermount"} {
		if p, err := osexec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: install the package fuse3", ErrNoFusermount)
}

// fusermountError sorts the helper's failures. It has one exit status for all,
// so its text, which LC_ALL=C keeps in English, is the only thing to go by.
func fusermountError(dir, text string, err error) error {
	var exit *osexec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run fusermount3: %w", err)
	}
	kind := ErrMountPoint
	switch {
	case strings.Contains(text, "try 'modprobe fuse'"), strings.Contains(text, "failed to open "+devicePath):
		kind = ErrNoDevice
	case strings.Contains(text, "Operation not permitted"):
		kind = ErrPermission
	case strings.Contains(text, "Device or resource busy"):
		kind = ErrBusy
	}
	return fmt.Errorf("mount %q: %w: %s", dir, kind, text)
}

func socketpair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "fusermount"), os.NewFile(uintptr(fds[1]), "fusermount"), nil
}

// receiveFD takes the descriptor that the helper sent before it exited.
func receiveFD(sock *os.File) (int, error) {
	data, oob := make([]byte, 4), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(sock.Fd()), data, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return -1, fmt.Errorf("receive descriptor from fusermount3: %w", err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		return -1, errors.New("receive descriptor from fusermount3: no control message")
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.New("receive descriptor from fusermount3: no descriptor")
	}
	return fds[0], nil
}
