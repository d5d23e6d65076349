package coherence

import (
	"slices"
	"unsafe"
)

// addressOf returns where mapped memory lies.
func addressOf(m []byte) int64 { return int64(uintptr(unsafe.Pointer(&m[0]))) }

func sortStrings(s []string) { slices.Sort(s) }
