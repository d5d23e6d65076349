// Package forks tests clones with changes and merges on real mounts: random
// work on both sides, forks of forks, many at once, package installs, and the
// death of winkfs at any write. FORK_RUNS makes the random tests longer,
// MODEL_SEED repeats one.
package forks
