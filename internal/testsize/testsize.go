// Package testsize says how much of its possible work a test does. There are three
// sizes: a small sample for `make quick` (go test -short), a larger one for `make test`,
// and everything for `make long` (the environment variable HEDDLE_LONG). No kind of check
// is in the large size alone, only more of it: more seeds, more machines, all pairs of
// that the others take in turn.
package testsize

import (
	"os"
	"strconv"
	"testing"
)

// Long reports whether a test is to try everything.
func Long() bool { return os.Getenv("HEDDLE_LONG") != "" }

// Pick returns the value for the size of this test run.
func Pick[T any](quick, usual, long T) T {
	switch {
	case Long():
		return long
	case testing.Short():
		return quick
	}
	return usual
}

// Runs is Pick for a number of runs. The environment variable HEDDLE_RUNS sets another
// for all tests that ask.
func Runs(quick, usual, long int) int {
	if n, err := strconv.Atoi(os.Getenv("HEDDLE_RUNS")); err == nil && n > 0 {
		return n
	}
	return Pick(quick, usual, long)
}

// Sample returns n of a list, or all in the large size. Calls with successive turns get
// successive parts of the list, so that together they take each of it as often.
func Sample[T any](all []T, n, turn int) []T {
	if Long() || n >= len(all) {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[(turn*n+i)%len(all)]
	}
	return some
}

// SkipQuick leaves a test that takes seconds to the larger sizes; others have shown its
// kind of check.
func SkipQuick(t testing.TB) {
	t.Helper()
	if Pick(true, false, false) {
		t.Skip("left to make test")
	}
}
