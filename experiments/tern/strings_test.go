package tern_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// Results of searches in strings, and lengths of copies, determine the operations: inputs
// with other results are not admitted, however long their arguments are, and the others
// follow the schedule.
func TestStringsDecide(t *testing.T) {
	bin := gcctest.File(t, "testdata/strings.c")
	m := memoize(t, config(t.TempDir(), bin, "ab", "off", "2"), tern.Options{})
	for args, same := range map[[3]string]bool{
		{"ab", "off", "2"}: true, {"cd", "off", "2"}: true, {"ab", "of", "2"}: true, {"ab", "one", "02"}: true,
		{"xb", "off", "2"}: false, {"abx", "off", "2"}: false, {"abcdefx", "off", "2"}: false,
		{"ab", "off", "+2"}: true, {"ab", "off", "2x"}: false, {"ab", "off", "0x2"}: false, {"ab", "on", "2"}: false, {"ab", "off", "4"}: false, {"ab", "off", "9"}: false,
	} {
		c := config(t.TempDir(), bin, args[0], args[1], args[2])
		why := tern.Admits(&c, m.File)
		if why == "" && !same {
			t.Errorf("%q is admitted, and takes the lock another number of times", args)
		}
		if r, _ := enforced(t, c, m); r.Schedule.Followed != same || why == "" && !r.Schedule.Followed {
			t.Errorf("%q: admitted %q, followed %v: %s", args, why, r.Schedule.Followed, r.Schedule.Reason)
		}
	}
}
