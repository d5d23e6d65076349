package workspace

import (
	"encoding/json"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/winkfs/winkfs/journal"
)

// Time is a point in time that is written as RFC 3339 in UTC, and as null or
// an empty string when it is zero.
type Time struct{ time.Time }

// TimeOf converts a journal's time. 0 is the zero Time.
func TimeOf(t journal.Timespec) Time {
	if t == 0 {
		return Time{}
	}
	return Time{time.Unix(0, int64(t)).UTC()}
}

// String returns the time as RFC 3339 with milliseconds.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// MarshalJSON writes the time, null when zero.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(time.RFC3339Nano))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.Time) }

// MarshalYAML writes the time.
func (t Time) MarshalYAML() (any, error) { return t.UTC().Format(time.RFC3339Nano), nil }

// UnmarshalYAML reads what MarshalYAML writes.
func (t *Time) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.Parse(time.RFC3339Nano, n.Value)
	t.Time = v
	return err
}
