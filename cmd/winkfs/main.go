package main

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/exec"
)

func main() {
	exec.Main()
	os.Exit(realMain(newEnv()))
}

// realMain runs the program and returns its exit status.
func realMain(e *env) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	err := runApp(ctx, e)
	printError(e.stderr, err, e.globals.json || wantsJSON(e.args[min(1, len(e.args)):]))
	return exitCode(err)
}
