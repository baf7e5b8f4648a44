package frost_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

// bugs are those of the paper's table 2, in its order.
var bugs = []string{
	"compressor", "apache-21287", "apache-25520", "apache-45605", "mysql-644", "mysql-791", "mysql-2011", "mysql-3596",
	"mysql-12848", "scanner", "glibc-12486",
}

// find builds a form of a program.
func find(t testing.TB, name string, form suite.Form) (suite.Program, string) {
	t.Helper()
	return build(t, name, suite.Variant{Form: form, Optimize: 2, Static: true})
}

// build builds a variant of a program.
func build(t testing.TB, name string, v suite.Variant) (suite.Program, string) {
	t.Helper()
	p, err := suite.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(v)
	if err != nil {
		t.Fatal(err)
	}
	return p, bin
}

// schedule makes options of the words of a program's schedule.
func schedule(t testing.TB, words []string) sched.Options {
	t.Helper()
	o, err := sched.ParseFlagWords(words)
	if err != nil {
		t.Fatalf("program.yaml: %v", err)
	}
	return o
}

// trial is a run under Frost.
type trial struct {
	*frost.Report
	stdout, stderr string
}

// options are those of a trial: the programs are short, and so are their loops.
func options() frost.Options {
	o := frost.DefaultOptions()
	o.Hang = 3_000_000
	return o
}

// configuration is the machine for a command.
func configuration(s sched.Options, seed uint64, command ...string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.MaxMemory = command, "/", 1<<30
	c.Seed, c.Sched = seed, s
	return c
}

// try runs a command under Frost.
func try(t testing.TB, o frost.Options, s sched.Options, seed uint64, command ...string) trial {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := configuration(s, seed, command...)
	c.Stdout, c.Stderr = &stdout, &stderr
	r, err := frost.Run(t.Context(), c, o)
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	return trial{r, stdout.String(), stderr.String()}
}

// text is the report in words.
func (x trial) text() string {
	var b strings.Builder
	_ = x.WriteText(&b)
	return b.String() + x.stderr
}

// command is the command line that a program's bug is shown with.
func command(p suite.Program, bin string) []string {
	return append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)
}
