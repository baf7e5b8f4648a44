package tern_test

import (
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// A program that takes locks by the addresses of memory follows a schedule that orders the allocation of memory, under
// other seeds, numbers of cores and arguments.
func TestLocksByAddresses(t *testing.T) {
	bin := gcctest.File(t, "testdata/addresses.c", "-O2")
	c := config(t.TempDir(), bin, "6", "1")
	m := memoize(t, c, tern.Options{})
	for seed := range 6 {
		c.Args = []string{bin, "6", strconv.Itoa(100 * seed)}
		c.Seed, c.Cores, c.Sched.DelayRate = uint64(seed), 1+seed%4, 0.2
		follows(t, c, m)
	}
	c.Args[1] = "7"
	if tern.Admits(&c, m.File) == "" {
		t.Error("another number of rounds is admitted")
	}
}
