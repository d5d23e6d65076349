// Package history tests the journal's promises with the built binary: any
// recorded point can be returned to, a return can be taken back, and the
// patch of a random change set makes the same tree elsewhere.
//
//	MODEL_SEED      plays this seed alone
//	HISTORY_POINTS  number of points returned to
package history
