package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// reuseTarget is a program whose schedules are reused: one of the suite, or one of the
// system, with a file that replaces {file} in its arguments.
type reuseTarget struct {
	name string
	dir  string
}

// targetInput is the input of a target.
type targetInput struct {
	// Arguments are its command line.
	Arguments string `mapstructure:"arguments"`
	// Size is the size of the file, in bytes.
	Size int `mapstructure:"size"`
	// Reused is set if the paper says that the schedule serves it.
	Reused bool `mapstructure:"reused"`
}

// isSuiteProgram reports whether the target is a program of the suite.
func (t *reuseTarget) isSuiteProgram() bool {
	_, err := suite.Find(t.name)
	return err == nil
}

// commandLine returns the command line for an input, and makes its file.
func (t *reuseTarget) commandLine(in *targetInput) ([]string, error) {
	if t.isSuiteProgram() {
		p, err := study.New(t.name, t.name, suite.Fixed, study.Size(in.Arguments), 1)
		if err != nil {
			return nil, err
		}
		return p.Config(1).Args, nil
	}
	file := fmt.Sprintf("%08d.text", in.Size) // all names have the same length and the same kinds of characters
	if err := os.WriteFile(filepath.Join(t.dir, file), compressibleText(in.Size), 0o600); err != nil {
		return nil, err
	}
	return append([]string{t.name}, strings.Fields(strings.ReplaceAll(in.Arguments, "{file}", file))...), nil
}

// compressibleText is n bytes that can be compressed, different for each n.
func compressibleText(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%x lines of %d\n", i*2654435761*(n+1)%1_000_003, i)
	}
	return []byte(b.String()[:n])
}

// runConfig is the configuration of a run on an input.
func (t *reuseTarget) runConfig(in *targetInput, cores int, seed uint64) (machine.Config, error) {
	c := machine.DefaultConfig()
	var err error
	c.Args, err = t.commandLine(in)
	c.Dir, c.Cores, c.Seed = t.dir, cores, seed
	c.Mounts = append(c.Mounts, machine.Mount{Host: t.dir, Guest: t.dir})
	return c, err
}

// breakOutCycles is the time after which a run leaves a schedule that makes no progress.
const breakOutCycles = 1_000_000_000

// runUnderSchedule runs a configuration under a schedule, or under its order of operations
// alone. The result is empty if the run followed it to the native output, otherwise the
// difference.
func runUnderSchedule(ctx context.Context, c machine.Config, f *hybrid.File, operations bool) (why string, err error) {
	want, _, err := study.RunNatively(ctx, c.Dir, hostCommandLine(&c)...)
	if err != nil {
		return "", err
	}
	tern.Enforce(&c, f, enforce.Options{SyncOnly: operations, Free: true, BreakOut: breakOutCycles})
	got, r, err := study.Run(ctx, c)
	switch {
	case err != nil:
		return "", err
	case !r.Schedule.Followed:
		return "left the schedule: " + r.Schedule.Reason, nil
	case got.ExitCode != 0 || got.Output != want:
		return "has another output than natively", nil
	}
	return "", nil
}

// hostCommandLine is a command line with the host's names of mounted files.
func hostCommandLine(c *machine.Config) []string {
	args := slices.Clone(c.Args)
	for i, a := range args {
		for _, m := range c.Mounts {
			if a == m.Guest {
				args[i] = m.Host
			}
		}
	}
	return args
}
