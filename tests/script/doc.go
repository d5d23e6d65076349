// Package script runs transcripts of the command line: *.txtar files, named
// verb_case, in testscript's language, and the one that README.md shows.
//
// Each script has winkfs in its PATH, a state root of its own, and may use:
//
//	status N CMD...   CMD must end with exit status N; output is kept for stdout and stderr
//	unchanged DIR     DIR is as the first `unchanged DIR` found it, times too
//	flip FILE         changes one bit in the middle of a file
//	newer FILE      gives a log segment the header of a later format
//	newest DIR PAT    sets $NEWEST to the newest file below DIR that matches PAT
//
// and the conditions [root] and [userns].
package script
