// Package history tests the journal's promises with the built binary: any
// recorded point can be returned to, a return can be taken back, the patch of
// a random change set makes the same tree elsewhere, a long history costs
// nothing where it isn't asked for, and a random mixture of everything, in a
// family of workspaces that are cloned and merged, equals a plain reference
// that keeps full copies (full_*_test.go).
//
//	MODEL_SEED       plays this seed alone
//	HISTORY_POINTS   number of points returned to
//	HISTORY_STEPS    steps of the random mixture
//	HISTORY_RECORDS  length of the long history
//	HISTORY_LIVE     changed files at its end
package history
