package fs

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// limiter bounds what the users of a mount can write into the log.
type limiter struct {
	mu      sync.Mutex
	since   time.Time // protected by mu, as are the others
	count   int
	dropped int
}

// reportsPerSecond is how many failed operations are logged each second.
const reportsPerSecond = 50

// allow reports whether one more may be logged, and how many were not since
// the last that was.
func (l *limiter) allow(now time.Time) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= time.Second {
		l.since, l.count = now, 0
	}
	if l.count >= reportsPerSecond {
		l.dropped++
		return 0, false
	}
	l.count++
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}

// report logs a failed operation. The name and the error's text are quoted,
// since both hold what the caller chose.
func (a *adapter) report(op string, h *fuse.InHeader, name string, e unix.Errno, err error) {
	dropped, ok := a.limit.allow(time.Now())
	if !ok {
		return
	}
	level, msg := slog.LevelInfo, "operation refused"
	if e == unix.EIO {
		level, msg = slog.LevelError, "operation failed"
	}
	attrs := []slog.Attr{
		slog.String("op", op), slog.Uint64("node", h.NodeId), slog.String("name", quote(name)),
		slog.String("errno", unix.ErrnoName(e)), slog.String("err", quote(err.Error())),
		slog.Uint64("tid", uint64(h.Pid)),
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("not_logged", dropped))
	}
	a.log.LogAttrs(context.Background(), level, msg, attrs...)
}

// maxQuoted bounds how much of a string is logged.
const maxQuoted = 512

// quote makes a string safe to log whatever the handler does.
func quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.QuoteToASCII(s[:maxQuoted]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
