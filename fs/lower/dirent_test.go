package lower

import (
	"encoding/binary"
	"strings"
	"testing"
)

// dirent encodes a linux_dirent64.
func dirent(ino uint64, typ byte, name string) []byte {
	b := binary.NativeEndian.AppendUint64(nil, ino)
	b = binary.NativeEndian.AppendUint64(b, 0)
	b = binary.NativeEndian.AppendUint16(b, uint16((19+len(name)+1+7)&^7))
	b = append(append(append(b, typ), name...), 0)
	return append(b, make([]byte, -len(b)&7)...)
}

func TestAppendDirents(t *testing.T) {
	buf := append(append(dirent(1, 4, "."), dirent(2, 8, "a")...), dirent(3, 10, strings.Repeat("x", 255))...)
	got := appendDirents(nil, buf, 7)
	want := []Dirent{{Name: "a", Ino: 2, Type: 0o100000, Source: 7}, {Name: strings.Repeat("x", 255), Ino: 3, Type: 0o120000, Source: 7}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzAppendDirents(f *testing.F) {
	f.Add(append(dirent(1, 4, ".."), dirent(2, 8, "name")...))
	f.Add(make([]byte, 40))
	f.Fuzz(func(t *testing.T, buf []byte) {
		for _, e := range appendDirents(nil, buf, 1) {
			if e.Name == "." || e.Name == ".." || strings.ContainsRune(e.Name, 0) || len(e.Name) > len(buf) {
				t.Errorf("name %q", e.Name)
			}
		}
	})
}
