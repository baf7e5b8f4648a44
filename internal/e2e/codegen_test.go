package e2e

import (
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestValgrind runs a program that translates another's code and changes its own
// translations all the time, in the pages that it runs from.
func TestValgrind(t *testing.T) {
	testsize.SkipQuick(t)
	dir := t.TempDir()
	command := []string{"valgrind", "-q", "--tool=none", "/bin/echo", "through valgrind"}
	want := execute(t, dir, nil, command...)
	if got := run(t, dir, nil, command...); got.stdout != want.stdout || got.stderr != want.stderr || got.status != want.status {
		t.Errorf("heddle:\n%v\n\nnative:\n%v", got, want)
	}
}
