// Package posix runs system calls on a directory and looks at what the manual
// pages promise: go-fuse's posixtest on a mount, and families of our own that
// run on a plain directory as well, which proves the test.
//
// TestMatrix makes each call with each kind of path in two directories and
// compares what comes of it, as TestTranscripts does with longer sequences; TestCopyUp changes files of a lower. TestUnionMatrix
// makes the matrix's calls on files that are a lower's, or were, and
// TestUnionScripts plays sequences of calls on them, both in mounts of mount(8)'s
// form, with one lower directory and several. The differences
// that remain are listed in fs/DIFFERENCES.md.
//
//	POSIX_DIR      runs our own families and the matrix below this directory instead
//	POSIX_PROFILE  "full" tells the matrix that device nodes and set-id bits can be made there
//	POSIX_MATRIX   "all" makes all calls of the matrix, which takes minutes; "3/8" the third of eight parts.
//	               It counts for the union's calls and scripts, too
//	POSIX_SCALE    1 to 10: tenths of the full size of large and deep trees (default half a tenth)
package posix
