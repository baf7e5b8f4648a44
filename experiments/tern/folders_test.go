package tern_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// The contents of a folder are no input, so an argument that names one is fixed: with
// another folder, or none, the program opens other files. The seed, which the program then
// does not use, may have any value.
func TestFolderIsNoInput(t *testing.T) {
	dir, vacant := folder(t), t.TempDir()
	c := config(t.TempDir(), built(t, "scanner"), "-p", "2", "-s", "1", "-w", "thread", "-d", dir)
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir}, machine.Mount{Host: vacant, Guest: vacant})
	m := memoize(t, c, tern.Options{})
	c.Args = slices.Clone(c.Args)
	c.Args[4] = "7"
	follows(t, c, m)
	for _, other := range []string{vacant, dir + "d"} {
		c.Args[8] = other
		if tern.Admits(&c, m.File) == "" {
			t.Errorf("%s is admitted", other)
		}
	}
}
