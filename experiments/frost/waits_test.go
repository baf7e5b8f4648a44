package frost_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/sched"
)

// TestTimesWithinOperations: an allocator that keeps the time of its calls gets the same times in all replicas.
func TestTimesWithinOperations(t *testing.T) {
	expectClean(t, "testdata/timedalloc.c", options())
}

// TestLoopsWithoutPause: a thread that waits in a loop of loads is preempted in the epoch-parallel replicas, which
// then end, and no replica differs.
func TestLoopsWithoutPause(t *testing.T) {
	expectClean(t, "testdata/spinning.c", frost.DefaultOptions())
}

// expectClean runs a program with several seeds, and expects the native output and no difference.
func expectClean(t *testing.T, source string, o frost.Options) {
	t.Helper()
	bin := gcctest.File(t, source, "-O2", "-pthread")
	want, _ := natively(t, []string{bin})
	for seed := 1; seed <= trials(3, 30); seed++ {
		if x := try(t, o, sched.Options{}, uint64(seed), bin); x.Verdict != frost.Clean || x.stdout != want {
			t.Errorf("seed %d prints %q, natively %q: %s", seed, x.stdout, want, x.text())
		}
	}
}
