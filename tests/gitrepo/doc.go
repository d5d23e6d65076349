// Package gitrepo works with git, and with Go, in a workspace over a large
// repository: what git knows of inode numbers, times and modes must hold.
package gitrepo
