// Package litmus has the command `heddle litmus`.
package litmus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/axiomatic"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

var errExpectMissing = errs.Define("litmus-expect-missing",
	"{file} has no result of the test {test}",
	"The file for --expect was made with other tests.",
	"Make it again from the results of these tests.")

// exitUnexpected is the status when outcomes are not those expected, or when
// machine and axioms disagree.
const exitUnexpected = 1

// litmusFlags are the flags of `heddle litmus`.
type litmusFlags struct {
	model, expect       string
	engine              string
	json, stats, check  bool
	random, seed, limit uint64
}

// Command returns `heddle litmus`.
func Command(o command.Output) *cobra.Command {
	var f litmusFlags
	c := &cobra.Command{
		Use:   "litmus [flags] FILE...",
		Short: "Find every outcome of litmus tests under a memory model",
		Long: `Run litmus tests, small multithreaded programs in herd's format for X86_64 or
X86, on the emulated processor: every interleaving of their instructions and,
under TSO and PSO, every order in which stores leave the store buffers. The
result of each test is printed in herd7's layout; the number in front of a state
is that of the executions explored that end in it, and a star marks the states
that satisfy the condition. The status is 1 when outcomes are not those of
--expect, or when --check finds a disagreement.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.ErrUsage.New("no litmus test is named", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.SayMissing(c.Flags(), []command.Dependence{{Flag: "seed", On: []string{"random"}}})
			if f.random > 0 && c.Flags().Changed("max-states") {
				o.Say("--max-states has no effect with --random")
			}
			return run(o, f, args)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.model, "model", "tso", "memory `MODEL`: "+strings.Join(memmodel.Names(), ", "))
	flags.StringVar(&f.engine, "engine", engines.Auto, "`ENGINE` that executes instructions: "+strings.Join(engines.Names(), ", "))
	flags.StringVar(&f.expect, "expect", "", "compare with the results in `FILE`, as herd7, litmus7 or heddle litmus printed them")
	flags.BoolVar(&f.check, "check", false, "compare with what the model's axioms allow, and print an execution of each difference")
	flags.BoolVar(&f.json, "json", false, "print the results as JSON")
	flags.BoolVar(&f.stats, "stats", false, "print what the exploration took")
	flags.Uint64Var(&f.random, "random", 0, "run each test `N` times at random instead of exploring it")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `N` of --random")
	flags.Uint64Var(&f.limit, "max-states", 4_000_000, "give a test up when it has more than `N` states")
	return c
}

// litmusRun is the work on the tests of one command.
type litmusRun struct {
	command.Output
	litmusFlags
	model    memmodel.Model
	machine  *explore.Machine
	expected []litmus.Expectation
	reports  []litmusReport
}

func run(o command.Output, f litmusFlags, files []string) error {
	model, ok := memmodel.Parse(f.model)
	if !ok {
		return command.ErrFlag.New("model", fmt.Sprintf("%q", f.model), strings.Join(memmodel.Names(), ", "))
	}
	if p := engines.Check(f.engine, arch.V2); p != nil {
		return command.ErrFlag.New(p.Field, p.Found, p.Allowed)
	}
	r := &litmusRun{Output: o, litmusFlags: f, model: model}
	if f.expect != "" {
		text, err := command.ReadText(f.expect)
		if err == nil {
			r.expected, err = litmus.ParseExpectations(f.expect, text)
		}
		if err != nil {
			return err
		}
	}
	tests, codes, err := readTests(files)
	if err != nil {
		return err
	}
	if r.machine, err = explore.NewMachine(f.engine); err != nil {
		return err
	}
	defer r.machine.Close()
	for i, t := range tests {
		if err := r.test(t, codes[i]); err != nil {
			return err
		}
	}
	return r.finish()
}

// readTests parses and assembles the tests in the files.
func readTests(files []string) ([]*litmus.Test, [][]litmus.Code, error) {
	var tests []*litmus.Test
	for _, path := range files {
		text, err := command.ReadText(path)
		if err != nil {
			return nil, nil, err
		}
		t, err := litmus.Parse(path, text)
		if err != nil {
			return nil, nil, err
		}
		tests = append(tests, t)
	}
	codes, err := litmus.Assemble(tests)
	return tests, codes, err
}

// test finds the outcomes of one test and reports them.
func (r *litmusRun) test(t *litmus.Test, code []litmus.Code) error {
	var outcomes *litmus.Outcomes
	var stats explore.Stats
	var explored *explore.Result
	var err error
	if r.random > 0 {
		outcomes, stats, err = r.machine.Walk(t, code, r.model, int(r.random), r.seed)
	} else {
		explored, err = r.machine.Explore(t, code, explore.Options{Model: r.model, MaxStates: int(r.limit)})
		if err == nil {
			outcomes, stats = explored.Outcomes, explored.Stats
		}
	}
	if err != nil {
		return err
	}
	if r.json {
		r.reports = append(r.reports, report(t, r.model, outcomes, stats))
	} else if err := r.print(outcomes, stats); err != nil {
		return err
	}
	if r.expect != "" {
		if err := r.compare(t, outcomes); err != nil {
			return err
		}
	}
	if r.check {
		return r.checkAxioms(t, outcomes, explored)
	}
	return nil
}

func (r *litmusRun) print(o *litmus.Outcomes, s explore.Stats) error {
	if err := o.Write(r.Stdout); err != nil {
		return err
	}
	if r.stats {
		fmt.Fprintf(r.Stdout, "Explored executions: %d states: %d transitions: %d merged: %d pruned: %d instructions run: %d remembered: %d\n\n",
			s.Executions, s.States, s.Transitions, s.Merged, s.Pruned, s.Instructions, s.Remembered)
	}
	return nil
}

// compare looks the test up in the expected results.
func (r *litmusRun) compare(t *litmus.Test, o *litmus.Outcomes) error {
	i := slices.IndexFunc(r.expected, func(e litmus.Expectation) bool { return e.Name == t.Name })
	if i < 0 {
		return errExpectMissing.New(r.expect, t.Name)
	}
	for _, difference := range o.Differences(r.expected[i]) {
		r.Say("%s: %s (%s:%d)", t.Name, difference, r.expect, r.expected[i].Line)
		r.Exit(exitUnexpected)
	}
	return nil
}

// checkAxioms compares the outcomes with those that the axioms allow. Random runs may miss some of
// these.
func (r *litmusRun) checkAxioms(t *litmus.Test, o *litmus.Outcomes, explored *explore.Result) error {
	allowed, err := axiomatic.Check(t, r.model)
	if err != nil {
		return err
	}
	for _, s := range o.Minus(allowed.Outcomes) {
		r.Exit(exitUnexpected)
		r.Say("%s: the machine reaches %s, which the axioms of %v forbid", t.Name, o.Observer().Format(s), r.model)
		if explored != nil {
			for _, e := range explored.Witness(s) {
				r.Say("    %v", e)
			}
		}
	}
	if explored == nil {
		return nil
	}
	for _, s := range allowed.Outcomes.Minus(o) {
		r.Exit(exitUnexpected)
		r.Say("%s: the axioms of %v allow %s, which the machine does not reach", t.Name, r.model, o.Observer().Format(s))
		for _, line := range allowed.Witness(s) {
			r.Say("    %s", line)
		}
	}
	return nil
}

// litmusReport is a test's result as JSON.
type litmusReport struct {
	Name        string         `json:"name"`
	File        string         `json:"file"`
	Model       string         `json:"model"`
	Condition   string         `json:"condition"`
	OK          bool           `json:"ok"`
	Observation string         `json:"observation"`
	Satisfied   uint64         `json:"satisfied"`
	Violated    uint64         `json:"violated"`
	States      []litmusState  `json:"states"`
	Stats       map[string]any `json:"stats"`
}

// litmusState is a state of a report.
type litmusState struct {
	Values    map[string]int64 `json:"values"`
	Count     uint64           `json:"count"`
	Satisfies bool             `json:"satisfies"`
}

func report(t *litmus.Test, m memmodel.Model, o *litmus.Outcomes, s explore.Stats) litmusReport {
	v := o.Verdict()
	r := litmusReport{
		Name: t.Name, File: t.File, Model: m.String(), Condition: t.Condition(), OK: v.OK, Observation: v.Observation,
		Satisfied: v.Satisfied, Violated: v.Violated,
		Stats: map[string]any{
			"executions": s.Executions, "states": s.States, "transitions": s.Transitions, "merged": s.Merged,
			"pruned": s.Pruned, "instructions": s.Instructions, "remembered": s.Remembered,
		},
	}
	for _, out := range o.Sorted() {
		state := litmusState{Values: map[string]int64{}, Count: out.Count, Satisfies: o.Observer().Satisfies(out.State)}
		for i, l := range o.Observer().Locs {
			state.Values[l.String()] = out.State[i]
		}
		r.States = append(r.States, state)
	}
	return r
}

// finish prints the summary at the end.
func (r *litmusRun) finish() error {
	if !r.json {
		return nil
	}
	encoder := json.NewEncoder(r.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r.reports)
}
