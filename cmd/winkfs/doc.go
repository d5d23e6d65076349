// Command winkfs gives a program that isn't fully trusted a workspace that
// looks like a directory of the host, and gives the person every change back
// to look at, undo, apply or throw away.
//
// Each command is a constructor (newXCommand) that binds flags into a struct
// of options, and a function (runX) that takes only values and interfaces.
// urfave/cli is used in the constructors and nowhere else. Errors travel up
// unprinted; main prints them and turns them into an exit status in one place
// (exit.go).
//
// # Decisions
//
// urfave/cli v2 stops reading flags at the first positional argument and
// would ignore what stands behind it. Arguments are therefore brought into
// order before it sees them (argv.go), driven by the flags that each command
// declares, and what no command declares is an error there.
//
// Completion asks the program itself by a hidden command, so that it knows
// workspaces and checkpoints; urfave's own completion is off.
package main
