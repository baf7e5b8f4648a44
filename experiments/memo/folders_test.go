package memo_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/memo"
)

// What is in a folder is no input, so an argument that names one has to be what it was: in
// another one, or none, the program opens other files. The seed, which it does not look at
// then, may be any.
func TestFolderIsNoInput(t *testing.T) {
	dir, vacant := folder(t), t.TempDir()
	c := config(t.TempDir(), built(t, "scanner"), "-p", "2", "-s", "1", "-w", "thread", "-d", dir)
	c.Mounts = append(c.Mounts, heddle.Mount{Host: dir, Guest: dir}, heddle.Mount{Host: vacant, Guest: vacant})
	m := memoize(t, c, memo.Options{})
	c.Args = slices.Clone(c.Args)
	c.Args[4] = "7"
	follows(t, c, m)
	for _, other := range []string{vacant, dir + "d"} {
		c.Args[8] = other
		if memo.Admits(&c, m.File) == "" {
			t.Errorf("%s is admitted", other)
		}
	}
}
