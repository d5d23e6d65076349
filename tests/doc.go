// Package tests holds what is tested above single packages, each kind in its
// own folder, and here the rules that the repository as a whole keeps.
//
//	harness/   builds, mounts, kills, compares
//	script/    transcripts of the command line, the README's among them
//	posix/     system calls on a directory, ours and go-fuse's
//	model/     random operations of several processes on two directories
//	fsx/       random operations on one file and on bytes in memory
//	stall/     operations that get stuck, and those that must not
//	history/   points, rollback, undo and patches of random histories
//	crash/     the daemon killed at its k-th write
//	attack/    a sandboxed program that tries to get out
//	coherence/ edits by the host below a mount that has everything cached
//	gitrepo/   git in a workspace over a large repository
//	bench/     the table of costs
//
// The scripts in real/ are run by hand: other people's programs on a workspace.
//
// Tests of the first kinds run against any directory too, which tells whether
// a failure is the test's.
package tests
