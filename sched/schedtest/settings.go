package schedtest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// A Setting is a machine and the scripts that it runs.
type Setting struct {
	Cores      int
	Options    sched.Options
	SwitchCost arch.Cycles
	Scripts    [][]Op
	Costs      []arch.Cycles // of an instruction, by thread
}

// Machine makes the machine of a setting under a seed.
func (s Setting) Machine(t testing.TB, seed uint64) *Machine {
	c := NewCluster(t, s.Cores, seed, s.Options)
	c.SetSwitchCost(s.SwitchCost)
	m := NewMachine(c, s.Scripts...)
	for i, cost := range s.Costs {
		m.Threads[i].Cost = cost
	}
	return m
}

func Settings(policies ...string) *rapid.Generator[Setting] {
	return rapid.Custom(func(t *rapid.T) Setting {
		s := Setting{
			Cores:      rapid.IntRange(1, 5).Draw(t, "cores"),
			Options:    drawOptions(t, policies),
			SwitchCost: arch.Cycles(rapid.IntRange(0, 40).Draw(t, "switch cost")),
		}
		n := rapid.IntRange(1, 12).Draw(t, "threads")
		for i := range n {
			s.Scripts = append(s.Scripts, drawScript(t, i, n, s.Cores))
			s.Costs = append(s.Costs, arch.Cycles(rapid.IntRange(1, 3).Draw(t, "cost")))
		}
		return s
	})
}

func drawOptions(t *rapid.T, policies []string) sched.Options {
	o := sched.Options{
		Policy:      rapid.SampledFrom(policies).Draw(t, "policy"),
		Quantum:     rapid.Uint64Range(1, 300).Draw(t, "quantum"),
		TimeSlice:   rapid.Uint64Range(1, 2000).Draw(t, "time slice"),
		Jitter:      Fraction(rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "jitter")),
		DelayRate:   rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "delay rate"),
		DelayCycles: rapid.Uint64Range(1, 3000).Draw(t, "delay"),
		Granularity: rapid.SampledFrom(sched.Granularities()).Draw(t, "granularity"),
		Depth:       rapid.IntRange(1, 6).Draw(t, "depth"),
		Length:      rapid.Uint64Range(6, 5000).Draw(t, "length"),
	}
	o.Fairness = max(o.Quantum, rapid.Uint64Range(1, 3000).Draw(t, "fairness"))
	return o
}

// drawScript draws the operations of thread i. It waits only for flags of threads
// before it, and raises its own at the end, so that every fair schedule ends.
func drawScript(t *rapid.T, i, n, cores int) []Op {
	kinds := []opKind{kindRun, kindRun, kindSleep, kindYield, kindPin, kindLocked, kindStop, kindHerd}
	if i > 0 {
		kinds = append(kinds, kindAwait, kindSpin, kindPause)
	}
	var script []Op
	for range rapid.IntRange(0, 8).Draw(t, "operations") {
		o := Op{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch o.kind {
		case kindRun:
			o.n = rapid.Uint64Range(1, 500).Draw(t, "instructions")
		case kindSleep:
			o.n = rapid.Uint64Range(0, 5000).Draw(t, "cycles")
		case kindPin:
			o.n = rapid.Uint64Range(1, 1<<cores-1).Draw(t, "mask")
		case kindStop, kindHerd:
			o.n = rapid.Uint64Range(0, uint64(n-1)).Draw(t, "other thread")
		case kindAwait, kindSpin, kindPause:
			o.n = rapid.Uint64Range(0, uint64(i-1)).Draw(t, "flag")
		}
		script = append(script, o)
	}
	return append(script, Set(uint64(i)))
}

// RapidTB makes a testing.TB of a rapid test, whose failures rapid reduces.
func RapidTB(t *testing.T, r *rapid.T) testing.TB { return rapidTB{t, r} }

type rapidTB struct {
	*testing.T
	r *rapid.T
}

func (x rapidTB) Helper()                           {}
func (x rapidTB) Fatalf(format string, args ...any) { x.r.Fatalf(format, args...) }
func (x rapidTB) Fatal(args ...any)                 { x.r.Fatal(args...) }
