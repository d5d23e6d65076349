// Package stall keeps operations of a mounted workspace waiting, on a lower
// file system that does not answer and on a disk that takes its time, and
// looks whether the others go on.
//
// The lower is a FUSE file system of the test's own (lower.go), whose directory
// "hung" answers nothing while its gate is closed. Syncs of the journal are held
// up by the daemon itself (WINKFS_STALL_SYNC).
package stall
