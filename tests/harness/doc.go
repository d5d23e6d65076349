// Package harness is what the tests of the built binary stand on: it builds
// winkfs once, gives each test a state directory, starts and kills workspaces,
// compares trees, and leaves no mount and no process behind.
//
// # Root and the ordinary user
//
// Main runs a package's tests as the caller. For root, when WINKFS_TEST_USER
// names a user, it then runs the same test binary again as that user, so that
// the tests themselves, and not only winkfs, have that user's rights: root has
// no access to a user's mount.
//
// # Environment
//
//	WINKFS_BIN        the binary to test; without it one is built
//	WINKFS_REQUIRE    comma list of binary, fuse, userns, podman, ...: what it
//	                  names may not be missing, tests fail instead of skipping
//	WINKFS_TEST_USER  the ordinary user of Main
//
// # Invariants
//
//   - The daemon is always another process: a process that reads its own mount
//     can deadlock.
//   - Everything started is ended in a cleanup function, whatever failed.
package harness
