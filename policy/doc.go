// Package policy decides whether an operation is allowed. Decisions are pure
// functions over parsed configuration: they touch no files and take no locks,
// so they may be asked under any lock and from any number of goroutines.
package policy
