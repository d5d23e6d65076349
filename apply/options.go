package apply

import (
	"errors"
	"log/slog"
)

// Errors that Run and Recover wrap.
var (
	// ErrConflict means that the host changed; Result.Conflicts says where.
	ErrConflict = errors.New("the host changed since the workspace was based on it")
	// ErrUnfinished means that an earlier apply is not finished: Recover first.
	ErrUnfinished = errors.New("an earlier apply is not finished")
	// ErrStuck means that an apply could neither be finished nor reverted by
	// itself. Its directory keeps everything that is needed to try again.
	ErrStuck = errors.New("apply can neither be finished nor reverted")
)

// Options say where and how to apply.
type Options struct {
	// Dir holds the applies of a workspace, one directory for each. It lies in
	// the state directory, outside of every source.
	Dir string
	// Roots are the source directories, opened O_PATH|O_DIRECTORY by the caller,
	// who keeps them open during the call and closes them.
	Roots map[uint32]int
	// Guard tells whether an item needs a yes of its own, and its class. nil
	// guards nothing.
	Guard func(*Item) (class string, guarded bool)
	// ForceGuarded applies guarded items without asking.
	ForceGuarded bool
	// Confirm asks for one guarded item, all of which are asked for before
	// anything is looked at or written. nil refuses.
	Confirm func(it *Item, class string) bool
	// DryRun stops after preflight; the result says what would be done.
	DryRun bool
	Logger *slog.Logger // nil discards
	// Step is called before each system call that changes the host or the state
	// directory, with what it is about to do: fault injection. An error counts
	// as the system call's.
	Step func(what string) error

	noExchange bool // tests: as if the file system could not exchange names
}

// Result says what an apply did, or would do under DryRun. Paths are below
// their source, sorted; with several sources the caller's Items tell them apart
// by Source.
type Result struct {
	ID        uint64     `json:"apply,omitempty"` // number of the apply; 0 = nothing was written
	Created   []string   `json:"created"`
	Modified  []string   `json:"modified"`
	Deleted   []string   `json:"deleted"`
	Conflicts []Conflict `json:"conflicts"`
	Skipped   []Skip     `json:"skipped"`
	Notes     []Skip     `json:"notes,omitempty"` // applied, but with a loss that is worth knowing
}

// Conflict is a path that stops an apply.
type Conflict struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Skip is a path that was left as it is, or a remark on one, with the reason.
type Skip struct {
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Guarded string `json:"guarded,omitempty"` // class, when it was left for want of a yes
}
