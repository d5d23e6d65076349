package model

import (
	"fmt"
	"strings"
)

// Kind is the system call of an Op.
type Kind int

// Kinds. Those on a slot use the descriptor that an earlier Open, Create or
// Tmpfile left in it.
const (
	Create    Kind = iota // open O_CREAT|O_RDWR with Flags into Slot
	Open                  // open with Flags into Slot
	Close                 // of Slot
	Write                 // pwrite of Slot at Off
	Append                // open O_APPEND, write, close of Path
	Read                  // pread of Slot
	ReadFile              // whole file at Path
	Truncate              // of Path
	Ftruncate             // of Slot
	Rename                // renameat2 with Flags
	Link
	LinkSlot // linkat of the file in Slot to Path
	Unlink
	Mkdir
	Rmdir
	Symlink // Path2 is the target
	Readlink
	Mkfifo
	Chmod
	Utimens
	Setxattr // Path2 is the attribute's name
	Removexattr
	Listxattr
	Fallocate // of Slot with Flags
	CopyRange // from Slot to Slot2
	Tmpfile   // in directory Path into Slot
	Fsync     // of Slot
	Stat
	Fstat
	List

	// Kinds that only a generator for several processes makes.
	Chdir
	Getcwd // relative to the world's directory
	Chown  // to Mode
	Flock  // of Slot with Flags, never waiting
	Mmap   // Len bytes of Slot; Mode is PROT_*, Flags MAP_SHARED or MAP_PRIVATE
	MapRead
	MapWrite // of what lies within the file
	Msync
	Munmap
	Drop    // the kernel's caches
	Remount // after all processes let go; with Flags 1 the daemon is killed

	kinds
)

var kindNames = [kinds]string{
	"create", "open", "close", "write", "append", "read", "readfile", "truncate", "ftruncate", "rename", "link", "linkslot",
	"unlink", "mkdir", "rmdir", "symlink", "readlink", "mkfifo", "chmod", "utimens", "setxattr", "removexattr", "listxattr",
	"fallocate", "copyrange", "tmpfile", "fsync", "stat", "fstat", "list",
	"chdir", "getcwd", "chown", "flock", "mmap", "mapread", "mapwrite", "msync", "munmap", "drop", "remount",
}

func (k Kind) String() string { return kindNames[k] }

// Op is one operation with all its arguments. Which fields count depends on
// the kind.
type Op struct {
	Kind        Kind
	Path, Path2 string
	Slot, Slot2 int
	Off, Len    int64
	Mode        uint32
	Flags       int
	Seed        uint64 // makes the bytes written
	Proc        int    // number of the process that does it
	Cwd         bool   // paths are relative to the working directory instead of the world's
}

// String is one line that tells all of the operation.
func (o Op) String() string {
	var b strings.Builder
	if o.Proc > 0 {
		fmt.Fprintf(&b, "[%d] ", o.Proc)
	}
	b.WriteString(o.Kind.String())
	field := func(name string, v any, zero bool) {
		if !zero {
			fmt.Fprintf(&b, " %s=%v", name, v)
		}
	}
	field("path", fmt.Sprintf("%q", o.Path), o.Path == "")
	field("path2", fmt.Sprintf("%q", o.Path2), o.Path2 == "")
	field("slot", o.Slot, o.Slot == 0)
	field("slot2", o.Slot2, o.Slot2 == 0)
	field("off", o.Off, o.Off == 0)
	field("len", o.Len, o.Len == 0)
	field("mode", fmt.Sprintf("%#o", o.Mode), o.Mode == 0)
	field("flags", fmt.Sprintf("%#x", o.Flags), o.Flags == 0)
	field("cwd", o.Cwd, !o.Cwd)
	field("seed", o.Seed, o.Seed == 0)
	return b.String()
}

// Data returns the operation's bytes, the same for the same Seed.
func (o Op) Data() []byte {
	b := make([]byte, o.Len)
	x := o.Seed*2862933555777941757 + 3037000493
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}
