package main

import (
	"fmt"

	"github.com/winkfs/winkfs/workspace"
)

// holderText says which process uses a mount and how.
func holderText(h workspace.Holder) string {
	return fmt.Sprintf("%s of process %d (%s)", h.What, h.PID, h.Comm)
}
