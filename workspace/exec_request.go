package workspace

import "io"

// ExecRequest asks for a command to be run with only the mount visible.
type ExecRequest struct {
	Command []string          `json:"command"`
	Cwd     string            `json:"cwd,omitempty"` // inside; "" = the configured workdir
	Env     map[string]string `json:"env,omitempty"`
	// Environ is the caller's environment; only variables that the
	// configuration passes on are taken from it.
	Environ []string `json:"environ,omitempty"`
	// Timeout in seconds: nil = the configured one, 0 = none.
	Timeout *Seconds `json:"timeout,omitempty"`
	Network string   `json:"network,omitempty"` // "" = the configured one
	Runner  string   `json:"runner,omitempty"`  // "" = the configured one
	// Atomic says that a command that fails is undone.
	Atomic bool `json:"atomic,omitempty"`
	// Capture says that the output goes into the result, not to the streams.
	Capture bool `json:"capture,omitempty"`
	// At are further absolute paths inside where the workspace shows.
	At []string `json:"at,omitempty"`
	// DryRun asks for the plan instead of a run.
	DryRun bool     `json:"dry_run,omitempty"`
	TTY    bool     `json:"tty,omitempty"` // give it a terminal of its own
	Size   *Winsize `json:"size,omitempty"`
}

// Winsize is the size of a terminal.
type Winsize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Streams are a running command's input and output and what may be told to it.
type Streams struct {
	Stdin          io.Reader // nil = empty
	Stdout, Stderr io.Writer
	Resize         <-chan Winsize // nil = never
	Signals        <-chan int     // signal numbers; nil = never
}

// ExecResult is the document winkfs.exec/v1.
type ExecResult struct {
	Schema     string    `json:"schema"`
	Exec       uint64    `json:"exec"`
	Command    []string  `json:"command"`
	Cwd        string    `json:"cwd"`
	ExitCode   int       `json:"exit_code"`
	Stdout     string    `json:"stdout"`
	Stderr     string    `json:"stderr"`
	DurationMS int64     `json:"duration_ms"`
	TimedOut   bool      `json:"timed_out"`
	Runner     string    `json:"runner"`
	Network    string    `json:"network"`
	Changes    EffectSet `json:"changes"`
	Denied     []Denied  `json:"denied"`
	Seq        [2]uint64 `json:"seq"` // first and last record
	Truncated  Truncated `json:"truncated"`
	RolledBack bool      `json:"rolled_back"`
	Plan       string    `json:"plan,omitempty"` // of a dry run
	Degraded   []string  `json:"degraded,omitempty"`
}

// Denied is one refused operation.
type Denied struct {
	Op      string `json:"op"`
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Truncated says which captured output was cut.
type Truncated struct {
	Stdout bool `json:"stdout"`
	Stderr bool `json:"stderr"`
}
