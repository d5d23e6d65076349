// Package journaltest makes journals for tests: long ones, whose shape is that
// of a workspace in which commands build and clean up again and again.
package journaltest
