// Package diffview turns changed files into what people and programs review:
// git patches, summaries, the entries of `winkfs diff --json`, hunks with
// stable ids, three-way merges, and the list of what the host would execute.
//
// It opens no files itself. The caller hands in a Change for each path, whose
// File.Open gives the bytes. Names and contents are hostile: Quote makes a name
// safe for a patch, Escape makes any text safe for a terminal, and Options.Color
// or Options.Terminal make Patch and Stat do that for everything they print.
//
// # Invariants
//
//   - Patch(changes) is accepted by `git apply --check` and yields the new tree,
//     except for what Notes lists.
//   - Every result is a function of its input alone. No clock decides how lines
//     match, so the hunk ids that `diff` shows are the ones `apply` finds.
//   - Work is bounded: a file above MaxText bytes is never held in memory, and
//     matching lines spends a fixed budget, after which what is left becomes one
//     whole replacement, which is larger than needed but still right.
//   - Functions are safe for concurrent use; they share no state and no locks.
//
// # Decisions
//
//   - sergi/go-diff matches the lines of small blocks, by runes that are renumbered
//     for each block, so that neither surrogates nor more than 55,000 distinct
//     lines can confuse it. Its deadline would make hunk ids depend on the load
//     of the machine, so it runs without one and blocks that are too large for
//     that are first split at lines that occur once on both sides, or matched
//     by a greedy Myers with a capped number of edits.
//   - A NUL byte anywhere makes a file binary; git looks at the first 8,000 bytes.
//   - Deletions come first in a patch and creations last. git looks up a path that
//     one section brings and another removes in the order of the sections, and
//     `git apply -R` takes them backwards.
//   - Entries give the whole mode of a regular file ("100600"), since it is what
//     changed; Patch gives the two modes that git knows.
package diffview
