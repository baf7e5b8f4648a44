package tern

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Admits returns the reason why a run may not follow a portable schedule; empty: it may.
func Admits(c *machine.Config, f *hybrid.File) string {
	set, err := preconditions.Parse(f.Preconditions, symbolic.NewPool())
	if err != nil {
		return err.Error()
	}
	checker, err := preconditions.NewChecker(set)
	if err != nil {
		return err.Error()
	}
	if why := environmentMismatch(c, f, FileSHA256); why != "" {
		return why
	}
	in := NewInput(c)
	defer in.Close()
	switch failed, shape := checker.Check(&in.Input); {
	case !shape:
		return "another number of arguments, or other variables"
	case failed >= 0:
		return "not " + set.Terms[failed].String()
	}
	return ""
}

// environmentMismatch returns a difference of the run's environment, besides its input,
// from the recorded one, or the empty string; sum is FileSHA256 or a cache of it.
func environmentMismatch(c *machine.Config, f *hybrid.File, sum func(path string) string) string {
	for _, x := range []struct {
		property        string
		found, expected any
	}{
		{"randomize_layout", c.RandomizeLayout, f.Layout},
		{"the memory model", c.Memory.MemoryModel().String(), f.Model},
		{"the program's SHA-256", sum(ProgramFile(c)), f.Program},
	} {
		if x.found != x.expected {
			return fmt.Sprintf("%s is %v, not %v", x.property, x.found, x.expected)
		}
	}
	if c.Dir != f.Dir && dependsOnFolder(f) {
		return fmt.Sprintf("the working folder is %s, not %s", c.Dir, f.Dir)
	}
	for _, in := range f.Inputs {
		if sum(hostPath(c, in.Path)) != in.SHA256 {
			return in.Path + " has changed"
		}
	}
	return ""
}

// dependsOnFolder reports whether the recorded run asked for its working folder, or read a
// file there that no argument names.
func dependsOnFolder(f *hybrid.File) bool {
	return slices.ContainsFunc(f.Inputs, func(in hybrid.Input) bool { return strings.HasPrefix(in.Path, f.Dir+"/") }) ||
		slices.ContainsFunc(f.Schedule.Operations, func(o event.Operation) bool {
			return o.Part == event.SystemCall && o.Number == unix.SYS_GETCWD
		})
}

// Enforce configures a run to follow a schedule that admits it.
func Enforce(c *machine.Config, f *hybrid.File, o enforce.Options) {
	peregrine.BindNow(c)
	c.Enforce = &machine.Enforce{Schedule: f.Schedule, Options: o, Seed: f.Seed, Cores: f.Cores}
}
