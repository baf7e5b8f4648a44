package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/axiomatic"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
)

// eachMemory runs a parallel subtest for every program whose buggy form fails
// under weak memory models only.
func eachMemory(t *testing.T, f func(t *testing.T, p Program)) {
	each(t, Buggy, func(t *testing.T, p Program) {
		if p.Kind == Memory {
			f(t, p)
		}
	})
}

// TestMemoryProgramsUnderSC runs the buggy forms under sequential consistency,
// where they are right in every interleaving.
func TestMemoryProgramsUnderSC(t *testing.T) {
	eachMemory(t, func(t *testing.T, p Program) {
		command := append([]string{build(t, p, Variant{Form: Buggy, Optimize: 2, Static: true})}, p.CommandLine(p.Trigger(), 2)...)
		for _, o := range []sched.Options{
			{Policy: sched.Timed},
			{Policy: sched.Timed, Quantum: 50},
			{Policy: sched.Random, Quantum: 20},
			{Policy: sched.Random, Granularity: sched.Instruction},
			{Policy: sched.PCT, Length: 100_000},
		} {
			for seed := uint64(1); seed <= testsize.Pick[uint64](1, 1, 3); seed++ {
				m := machineSetup{cores: 4, seed: seed, sched: o}
				r, h := emulate(t, m, command...)
				if got := emulated(r, h, ""); got != Correct {
					t.Errorf("on %v: %s, %v", m, got, r)
				}
			}
		}
	})
}

// TestMemoryProgramsNatively runs the buggy forms on the host, whose processor
// keeps the order of stores: programs that fail under PSO alone must be right.
func TestMemoryProgramsNatively(t *testing.T) {
	eachMemory(t, func(t *testing.T, p Program) {
		bin := build(t, p, Variant{Form: Buggy, Optimize: 2})
		for range 5 {
			r := run(t, timeLimit, nil, append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)...)
			got := r.outcome("")
			if got != Correct && (!slices.Contains(p.Models, TSO) || !p.expects(got)) {
				t.Errorf("%s, %v", got, r)
			}
		}
	})
}

// TestMemoryProgramsUnderModels runs both forms on machines with store buffers:
// the fixed form is right under every model, and the buggy form fails under those
// that program.yaml names and under no other.
func TestMemoryProgramsUnderModels(t *testing.T) {
	const seeds = 30
	eachMemory(t, func(t *testing.T, p Program) {
		words := p.CommandLine(p.Trigger(), 2)
		fixed := append([]string{build(t, p, Variant{Form: Fixed, Optimize: 2, Static: true})}, words...)
		buggy := append([]string{build(t, p, Variant{Form: Buggy, Optimize: 2, Static: true})}, words...)
		for _, o := range []storebuffer.Options{{Model: "tso"}, {Model: "pso"}, {Model: "tso", Engine: storebuffer.Pages}} {
			can, failed := slices.Contains(p.Models, Model(o.Model)), false
			for seed := uint64(1); seed <= testsize.Pick[uint64](1, 2, 3) || can && !failed && seed <= seeds; seed++ {
				m := machineSetup{
					cores: 4, seed: seed, sched: sched.Options{Policy: sched.Random, Quantum: 20},
					memory: o, limit: 50_000_000,
				}
				r, h := emulate(t, m, fixed...)
				if emulated(r, h, "") != Correct {
					t.Errorf("the fixed form on %v: %v", m, r)
				}
				m.limit = hangFactor * h.Instructions
				r, h = emulate(t, m, buggy...)
				got := emulated(r, h, "")
				if got != Correct && (!can || !slices.Contains(p.Outcomes, got)) {
					t.Errorf("the buggy form on %v: %s, %v", m, got, r)
				}
				failed = failed || got != Correct
			}
			if can && !failed {
				t.Errorf("the buggy form does not fail in %d seeds under %+v", seeds, o)
			}
		}
	})
}

var fence = regexp.MustCompile(`[ms]fence`)

// TestMemoryCores explores the few accesses that each program's failure comes
// from, as the litmus test in its folder has them: with the fences never under
// any model, and without under exactly those that program.yaml names. The axioms
// of the models must say the same.
func TestMemoryCores(t *testing.T) {
	machine, err := explore.NewMachine(engines.Auto)
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Kind != Memory {
			continue
		}
		file := filepath.Join(p.Folder, p.Name+".litmus")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		without := fence.ReplaceAllString(string(text), "")
		for _, m := range memmodel.Models() {
			if fails(t, machine, file, string(text), m) {
				t.Errorf("%s can fail under %v with its fences", p.Name, m)
			}
			want := slices.Contains(p.Models, Model(m.String()))
			if got := fails(t, machine, file, without, m); got != want {
				t.Errorf("%s without fences under %v: can fail: %v, program.yaml: %v", p.Name, m, got, want)
			}
		}
	}
}

// fails reports whether the condition of a litmus test can hold.
func fails(t *testing.T, machine *explore.Machine, file, text string, m memmodel.Model) bool {
	t.Helper()
	test, err := litmus.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	code, err := litmus.Assemble([]*litmus.Test{test})
	if err != nil {
		t.Fatal(err)
	}
	explored, err := machine.Explore(test, code[0], explore.Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := axiomatic.Check(test, m)
	if err != nil {
		t.Fatal(err)
	}
	positive := explored.Outcomes.Verdict().Satisfied > 0
	if positive != (allowed.Outcomes.Verdict().Satisfied > 0) {
		t.Errorf("%s under %v: machine and axioms do not agree", file, m)
	}
	return positive
}
