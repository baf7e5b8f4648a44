package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/memo"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// target is a program that schedules are reused of: one of the suite, or one of the
// system, with a file that {file} in its arguments stands for.
type target struct {
	name string
	dir  string
}

// input is what a target is given.
type input struct {
	// Arguments are its command line.
	Arguments string `mapstructure:"arguments"`
	// Size is that of the file, in bytes.
	Size int `mapstructure:"size"`
	// Reused tells whether the paper says that the schedule serves it.
	Reused bool `mapstructure:"reused"`
}

// suite tells whether the target is a program of the suite.
func (t *target) suite() bool {
	_, err := programs.Find(t.name)
	return err == nil
}

// command is the command line on an input, whose file is made.
func (t *target) command(in *input) ([]string, error) {
	if t.suite() {
		p, err := study.New(t.name, t.name, programs.Fixed, study.Size(in.Arguments), 1)
		if err != nil {
			return nil, err
		}
		return p.Config(1).Args, nil
	}
	file := fmt.Sprintf("%08d.text", in.Size) // names are as long as each other, and of one kind
	if err := os.WriteFile(filepath.Join(t.dir, file), text(in.Size), 0o600); err != nil {
		return nil, err
	}
	return append([]string{t.name}, strings.Fields(strings.ReplaceAll(in.Arguments, "{file}", file))...), nil
}

// text is so many bytes that can be compressed, others for each number.
func text(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%x lines of %d\n", i*2654435761*(n+1)%1_000_003, i)
	}
	return []byte(b.String()[:n])
}

// config is that of a run on an input.
func (t *target) config(in *input, cores int, seed uint64) (heddle.Config, error) {
	c := heddle.DefaultConfig()
	var err error
	c.Args, err = t.command(in)
	c.Dir, c.Cores, c.Seed = t.dir, cores, seed
	c.Mounts = append(c.Mounts, heddle.Mount{Host: t.dir, Guest: t.dir})
	return c, err
}

// patience is after how many cycles a run leaves a schedule of which nothing happens.
const patience = 1_000_000_000

// follows runs a configuration under a schedule, or its order of operations alone. Empty:
// it followed it, to the output that the program has natively; otherwise what it did
// instead.
func follows(ctx context.Context, c heddle.Config, f *hybrid.File, operations bool) (why string, err error) {
	want, _, err := study.Natively(ctx, c.Dir, onHost(&c)...)
	if err != nil {
		return "", err
	}
	memo.Enforce(&c, f, sched.EnforceOptions{SyncOnly: operations, Free: true, BreakOut: patience})
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

// onHost is a command line with the host's names of files that are mounted.
func onHost(c *heddle.Config) []string {
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
