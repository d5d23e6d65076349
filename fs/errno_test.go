package fs

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/policy"
)

func TestToErrno(t *testing.T) {
	type test struct {
		name string
		err  error
		want unix.Errno
	}
	tests := []test{
		{"unknown", errors.New("x"), unix.EIO},
		{"end of file", io.EOF, unix.EIO},
		{"wrapped errno", fmt.Errorf("open lower: %w", unix.EMFILE), unix.EMFILE},
		{"path error", &iofs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}, unix.ENOTDIR},
		{"system call error", os.NewSyscallError("write", unix.ENOSPC), unix.ENOSPC},
		{"not implemented below", fmt.Errorf("x: %w", unix.ENOSYS), unix.EOPNOTSUPP},
		{"no errno", fmt.Errorf("x: %w", syscall.Errno(0)), unix.EIO},
		{"kernel's own", fmt.Errorf("x: %w", syscall.Errno(512)), unix.EIO},
		{"huge", fmt.Errorf("x: %w", syscall.Errno(1<<31)), unix.EIO},
		{"sentinel before errno", fmt.Errorf("%w: %w", unix.EPERM, tree.ErrNoSpace), unix.ENOSPC},
		{"joined", errors.Join(errors.New("x"), tree.ErrQuota), unix.EDQUOT},
		{"hidden by a rule", &tree.Refusal{Decision: policy.Decision{Verdict: policy.Hidden}}, unix.ENOENT},
		{"read-only by a rule", fmt.Errorf("w: %w", &tree.Refusal{Decision: policy.Decision{Verdict: policy.ReadOnly}}), unix.EROFS},
		{"forbidden by a rule", &tree.Refusal{Decision: policy.Decision{Verdict: policy.Forbidden}}, unix.EPERM},
	}
	for _, s := range sentinels {
		tests = append(tests, test{s.err.Error(), fmt.Errorf("do %q: %w", "name", s.err), s.errno})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := toErrno(tt.err); got != tt.want {
				t.Errorf("got %v, want %v", unix.ErrnoName(got), unix.ErrnoName(tt.want))
			}
		})
	}
}
