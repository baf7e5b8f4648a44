// Package e2e holds the tests that run whole programs on heddle's command
// line: Debian's own programs against the same programs on the host's kernel,
// the same run again and again under load, deadlocks, hostile guests and
// damaged program files. It has no code besides its tests.
//
// The tests run the binary that HEDDLE_BIN names; without it they build one.
// Their C programs are in testdata and are compiled when a test needs them.
// With -short each subject runs in one configuration.
package e2e
