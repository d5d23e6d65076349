// Package fsx plays random operations on one file and compares its bytes and
// its size with a model in memory after each, in the manner of Apple's and the
// Linux Test Project's fsx: reads and writes through several descriptors, with
// O_APPEND and O_DIRECT, through a shared mapping, truncation, fallocate(2) in
// all its modes, copy_file_range(2), and between them fsync, dropped caches and
// remounts. The file is one that the lower has, small or large, sparse or not,
// or a new one. At the end the workspace is rolled back, and the file must be
// what it was in the beginning, and again what it became after the redo.
//
//	FSX_SEED  plays this seed alone
//	FSX_RUNS  number of seeds for each kind of file, FSX_OPS operations for each
//	FSX_DIR   plays in a directory below this one instead of a mount
package fsx
