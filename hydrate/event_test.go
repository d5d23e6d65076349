package hydrate

import (
	"encoding/binary"
	"reflect"
	"testing"
)

// raw encodes an event as the kernel does: the name padded with zeros.
func raw(wd int32, mask uint32, name string, pad int) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(wd))
	b = binary.NativeEndian.AppendUint32(b, mask)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(name)+pad))
	return append(append(b, name...), make([]byte, pad)...)
}

func TestDecode(t *testing.T) {
	two := append(raw(1, 2, "a", 15), raw(-1, 0x4000, "", 0)...)
	tests := []struct {
		name string
		buf  []byte
		want []event
		ok   bool
	}{
		{"empty", nil, nil, true},
		{"one", raw(7, 2, "name", 12), []event{{7, 2, "name"}}, true},
		{"two", two, []event{{1, 2, "a"}, {-1, 0x4000, ""}}, true},
		{"unpadded", raw(7, 2, "name", 0), []event{{7, 2, "name"}}, true},
		{"cut header", two[:len(two)-1], []event{{1, 2, "a"}}, false},
		{"cut name", raw(7, 2, "name", 12)[:20], nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []event
			ok := decode(tt.buf, func(e event) { got = append(got, e) })
			if ok != tt.ok || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v %v, want %v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(raw(1, 2, "name", 12))
	f.Add(raw(1, 2, "", 0))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, buf []byte) {
		n := 0
		decode(buf, func(e event) { n += 16 + len(e.name) })
		if n > len(buf) {
			t.Errorf("events of %d bytes from %d", n, len(buf))
		}
	})
}
