package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"os/signal"
	"strings"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/workspace"
)

// printable returns a name or text with its control characters escaped, for a
// terminal.
func printable(s string) string { return diffview.Escape(s) }

// note prints a message for the person, which --quiet leaves out.
func (e *env) note(format string, args ...any) {
	if !e.globals.quiet {
		fmt.Fprintf(e.stderr, format+"\n", args...)
	}
}

// emit prints one JSON document. Every document carries its schema.
func (e *env) emit(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// colour reports whether the result is to be coloured.
func (e *env) colour() (bool, error) {
	switch e.globals.color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto", "":
		return isTerminal(e.stdout) && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb", nil
	}
	return false, usage("--color must be auto, always or never, not %q", e.globals.color)
}

// paged calls fn with a writer that a pager shows when the result goes to a
// terminal. A pager that is left early is no error.
func (e *env) paged(fn func(io.Writer) error) error {
	cmd := e.pager()
	if cmd == nil {
		w := bufio.NewWriterSize(e.stdout, 64<<10)
		err := fn(w)
		if ferr := w.Flush(); err == nil {
			err = ferr
		}
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start pager: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start pager: %w", err)
	}
	err = fn(in)
	in.Close()
	_ = cmd.Wait()
	if isBrokenPipe(err) {
		return nil
	}
	return err
}

// pager returns the pager's command, nil for none.
func (e *env) pager() *osexec.Cmd {
	if !isTerminal(e.stdout) || e.globals.json {
		return nil
	}
	line := "less -FRX"
	for _, key := range []string{"PAGER", "WINKFS_PAGER"} {
		if v := e.getenv(key); v != "" {
			line = v
		}
	}
	if line == "cat" {
		return nil
	}
	if _, err := osexec.LookPath(strings.Fields(line)[0]); err != nil {
		return nil
	}
	cmd := osexec.Command("/bin/sh", "-c", line)
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, e.environ
	return cmd
}

// confirm asks a person before something is destroyed. Without a terminal the
// flag --yes is needed.
func (e *env) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !e.interactive() {
		return workspace.Fail(workspace.CodeRefused, "%s: nobody to ask", strings.TrimSuffix(question, "?")).
			Hinted("add --yes")
	}
	answer, err := e.ask(question + " [y/N] ")
	if err != nil || !isYes(answer) {
		return workspace.Fail(workspace.CodeRefused, "refused: nothing was done")
	}
	return nil
}

func isYes(answer string) bool {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

// ask prints a question on standard error and reads one line of the answer.
// The end of input and Ctrl-C are errors. It reads byte by byte, so that
// nothing behind the line is lost.
func (e *env) ask(question string) (string, error) {
	fmt.Fprint(e.stderr, question)
	r, err := newStoppableReader(e.stdin)
	if err != nil {
		return "", err
	}
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	answered := make(chan struct{})
	go func() {
		select {
		case <-interrupt:
		case <-answered:
		}
		r.stop()
	}()
	defer close(answered)
	defer signal.Stop(interrupt)
	return readLine(r)
}

func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		if n == 1 && b[0] == '\n' {
			return string(line), nil
		}
		if n == 1 {
			line = append(line, b[0])
			continue
		}
		if err != nil {
			return "", err
		}
	}
}
