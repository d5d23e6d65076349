// Package posix runs system calls on a directory and looks at what the manual
// pages promise: go-fuse's posixtest on a mount, and families of our own that
// run on a plain directory as well, which proves the test.
//
//	POSIX_DIR  runs our own families below this directory instead
package posix
