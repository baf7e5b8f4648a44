package solve_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/h3/solve"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// litmus builds traces of threads that each have a core.
type litmus struct {
	*model.Trace
	place uint64
}

func newLitmus(threads int) *litmus {
	l := &litmus{Trace: model.New(symbolic.NewPool())}
	for i := range threads {
		l.AddThread(string(rune('1' + i)))
	}
	return l
}

func (l *litmus) add(e model.Event) model.ID {
	e.Core, e.CoreInstructions = arch.CoreID(e.Thread), l.place
	l.place++
	return l.Add(e)
}

func (l *litmus) write(thread int, addr, value uint64) {
	l.add(model.Event{Kind: model.Write, Thread: thread, Addr: addr, Size: 4, Value: l.Pool.Word(value, 32)})
}

func (l *litmus) read(thread int, addr uint64) *symbolic.Expr {
	s := l.SymbolOf(thread, 4)
	l.add(model.Event{Kind: model.Read, Thread: thread, Addr: addr, Size: 4, Symbol: s})
	return s
}

func (l *litmus) sync(thread int, kind model.Kind, object event.ObjectID) {
	l.add(model.Event{Kind: kind, Thread: thread, Object: object})
}

func (l *litmus) bug(e *symbolic.Expr, is uint64) {
	l.Bug = append(l.Bug, model.Condition{Expr: l.Pool.Eq(e, l.Pool.Word(is, e.Bits)), Thread: -1})
}

// expect demands the models under which a trace has a schedule, of every encoding.
func (l *litmus) expect(t *testing.T, name string, models ...model.MemoryModel) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, m := range []model.MemoryModel{model.SC, model.TSO, model.PSO} {
		want := wanted(slices.Contains(models, m))
		for _, free := range []bool{false, true} {
			if a := search.Search(l.Trace, m, search.Options{FreeCores: free}).Answer; (a == search.Found) != (want == smt.Satisfiable) || a == search.Limit {
				t.Errorf("%s under %v: the search says %v, want %v", name, m, a, want)
			}
		}
		for _, e := range append(constraints.Encodings(), constraints.Pruned{FreeCores: true}) {
			if e.Supports(m) != nil {
				continue
			}
			sys, err := constraints.New(l.Trace, m, e, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []solve.Clocks{solve.Integers, solve.Bits} {
				r, err := solve.Solve(sys, solve.Options{Clocks: c, Within: shared})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if r.Answer != want {
					t.Errorf("%s under %v, %s: %v, want %v", name, m, e.Name(), r.Answer, want)
				}
			}
		}
	}
}

const x, y, z = 0x100, 0x200, 0x300

// The outcomes of Sewell and others, x86-TSO (CACM 2010), and of PSO by the SPARC
// manual, version 8, appendix J.
func TestClassicOutcomes(t *testing.T) {
	sb := func(kind model.Kind) *litmus {
		l := newLitmus(2)
		for i, a := range []uint64{x, y} {
			l.write(i, a, 1)
			if kind != model.Read {
				l.sync(i, kind, 0)
			}
			l.bug(l.read(i, x+y-a), 0)
		}
		return l
	}
	sb(model.Read).expect(t, "SB", model.TSO, model.PSO)
	sb(model.StoreFence).expect(t, "SB with store fences", model.TSO, model.PSO)
	sb(model.Fence).expect(t, "SB with fences")

	mp := func(fence bool) *litmus {
		l := newLitmus(2)
		l.write(0, x, 1)
		if fence {
			l.sync(0, model.StoreFence, 0)
		}
		l.write(0, y, 1)
		l.bug(l.read(1, y), 1)
		l.bug(l.read(1, x), 0)
		return l
	}
	mp(false).expect(t, "MP", model.PSO)
	mp(true).expect(t, "MP with a store fence")

	// Example 2.4 of Intel's white paper on memory ordering: a thread sees its own
	// writes early.
	l := newLitmus(2)
	for i, a := range []uint64{x, y} {
		l.write(i, a, 1)
		l.bug(l.read(i, a), 1)
		l.bug(l.read(i, x+y-a), 0)
	}
	l.expect(t, "SB with own reads", model.TSO, model.PSO)

	l = newLitmus(2)
	l.bug(l.read(0, x), 1)
	l.write(0, y, 1)
	l.bug(l.read(1, y), 1)
	l.write(1, x, 1)
	l.expect(t, "LB")

	l = newLitmus(4)
	l.write(0, x, 1)
	l.write(1, y, 1)
	for i, a := range []uint64{x, y} {
		l.bug(l.read(2+i, a), 1)
		l.bug(l.read(2+i, x+y-a), 0)
	}
	l.expect(t, "IRIW")
}

// figure2 is the trace of H3's figure 2 in which the assertion fails.
func figure2() *litmus {
	l := newLitmus(2)
	l.Initial[x], l.Initial[y] = 1, 2
	l.add(model.Event{Kind: model.Fork, Peer: 1})
	l.write(0, z, 0)
	for _, a := range []uint64{x, y} {
		value := l.Pool.Add(l.read(0, a), l.Pool.Word(1, 32))
		l.add(model.Event{Kind: model.Write, Addr: a, Size: 4, Value: value})
	}
	l.write(0, z, 1)
	l.add(model.Event{Kind: model.Join, Peer: 1})
	l.add(model.Event{Kind: model.Begin, Thread: 1})
	flag := l.Pool.Eq(l.read(1, z), l.Pool.Word(1, 32))
	l.Path = append(l.Path, model.Condition{Expr: flag, Thread: 1})
	x1 := l.Pool.Add(l.read(1, x), l.Pool.Word(1, 32))
	l.Bug = append(l.Bug, model.Condition{Expr: l.Pool.Not(l.Pool.Eq(x1, l.read(1, y))), Thread: 1})
	l.add(model.Event{Kind: model.End, Thread: 1})
	return l
}

// H3 section 2.1: the error of figure 2 needs PSO.
func TestFigure2(t *testing.T) {
	l := figure2()
	l.expect(t, "figure 2", model.PSO)
	sys, err := constraints.New(l.Trace, model.SC, constraints.Pruned{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := solve.Conflict(sys, solve.Options{Within: shared}); !slices.Contains(got, constraints.MemoryOrder) || !slices.Contains(got, constraints.Bug) {
		t.Errorf("what contradicts each other under SC is %v; without the order or the bug there is a schedule", got)
	}
}

// Figure 3 of H3 has the read-write constraints of z: a match with each of the
// writes and with the initial value, 1 + 2*3 order constraints beside 3 values.
func TestFigure3(t *testing.T) {
	l := figure2()
	sys, err := constraints.New(l.Trace, model.PSO, constraints.CLAP{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var of string
	for _, f := range sys.Parts[constraints.ReadWrite] {
		if text := f.String(); strings.Contains(text, "r1.1") {
			of = text
		}
	}
	// O1 and O6 are the writes of lines 2 and 5, O9 the read of line 7.
	want := "(r1.1 = 0 ∧ O9 < O1 ∧ O9 < O6) ∨ (r1.1 = 0 ∧ O1 < O9 ∧ (O6 < O1 ∨ O9 < O6)) ∨ (r1.1 = 1 ∧ O6 < O9 ∧ (O1 < O6 ∨ O9 < O1))"
	if of != want {
		t.Errorf("the constraints of z are\n%s\nwant\n%s", of, want)
	}
}

// figure5 is a read of the values that four writes on each of four cores write.
func figure5() *litmus {
	l := newLitmus(5)
	for i := range 4 {
		for k := range 4 {
			l.write(i, x, uint64(4*i+k+1))
		}
	}
	l.read(4, x)
	return l
}

// Figure 5 and section 3.4: to make R read from W7, core 1 has 5 choices of order
// instead of 16.
func TestFigure5(t *testing.T) {
	sys, err := constraints.New(figure5().Trace, model.TSO, constraints.Cores{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	// O4 to O7 are W5 to W8, O0 to O3 are W1 to W4, O16 is R.
	match := sys.Parts[constraints.ReadWrite][0].Args[1+6]
	want := "r4.0 = 7 ∧ O6 < O16 ∧ O16 < O7 ∧ " +
		"(O16 < O0 ∨ (O0 < O6 ∧ O16 < O1) ∨ (O1 < O6 ∧ O16 < O2) ∨ (O2 < O6 ∧ O16 < O3) ∨ O3 < O6) ∧ "
	if got := match.String(); !strings.HasPrefix(got, want) {
		t.Errorf("R reads from W7 if\n%s\nwant\n%s...", got, want)
	}
}

// Theorem 1, and that its count is the number of choices: the sets of writes that
// can be before a read, when the writes of a core are in order.
func TestTheorem1(t *testing.T) {
	for _, cores := range []int{1, 2, 4} {
		l := newLitmus(cores)
		const n = 8
		for i := range n {
			l.write(i%cores, x, uint64(i))
		}
		c := constraints.CountChoices(l.Trace)
		ordered := 0
		for set := range 1 << n {
			ok := true
			for i := cores; i < n; i++ { // a write before the read, the one before it on its core not
				ok = ok && (set>>i&1 == 0 || set>>(i-cores)&1 != 0)
			}
			if ok {
				ordered++
			}
		}
		if c.Free.Cmp(big.NewInt(1<<n)) != 0 || c.Ordered.Cmp(big.NewInt(int64(ordered))) != 0 || c.Bound.Cmp(c.Ordered) != 0 {
			t.Errorf("%d cores: %v free, %v ordered, bound %v; want %d, %d", cores, c.Free, c.Ordered, c.Bound, 1<<n, ordered)
		}
	}
}

// The reduction removes constraints, more of them the more writes there are; Pruned
// needs fewer still.
func TestReduction(t *testing.T) {
	l := figure5()
	counts := map[string]int{}
	for _, e := range constraints.Encodings() {
		sys, err := constraints.New(l.Trace, model.TSO, e, 0)
		if err != nil {
			t.Fatal(err)
		}
		counts[e.Name()] = sys.Clauses(constraints.ReadWrite)
	}
	// CLAP: for each of 16 writes a value, an order and 15 other writes; 1 + 16 for the initial
	// value. H3: a value, R after W, R before the next on its core but for the last, and 3 other
	// cores; 1 + 4.
	if want := 16*17 + 17; counts["clap"] != want {
		t.Errorf("CLAP has %d constraints, want %d", counts["clap"], want)
	}
	if want := 12*6 + 4*5 + 5; counts["h3"] != want {
		t.Errorf("H3 has %d constraints, want %d", counts["h3"], want)
	}
	if counts["heddle"] != 0 {
		t.Errorf("nothing depends on the read, and there are %d constraints on it", counts["heddle"])
	}
}

// Answers do not depend on anything but the system: twice the same schedule.
func TestSchedulesRepeat(t *testing.T) {
	for _, e := range []constraints.Encoding{constraints.CLAP{}, constraints.Pruned{}} {
		var first *solve.Result
		for range 2 {
			sys, err := constraints.New(figure2().Trace, model.PSO, e, 0)
			if err != nil {
				t.Fatal(err)
			}
			r, err := solve.Solve(sys, solve.Options{Limits: smt.Limits{Steps: 10_000_000}})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
			} else if !slices.Equal(first.Schedule, r.Schedule) {
				t.Errorf("%s: %v and %v", e.Name(), first.Schedule, r.Schedule)
			}
		}
	}
}

// Both kinds of clocks in turn give figure 2's answer under each model; limits of steps end them
// without an answer, and so does a stop.
func TestEither(t *testing.T) {
	for m, want := range map[model.MemoryModel]smt.Answer{model.SC: smt.Unsatisfiable, model.TSO: smt.Unsatisfiable, model.PSO: smt.Satisfiable} {
		sys, err := constraints.New(figure2().Trace, m, constraints.Pruned{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := solve.SolveAlternating(sys, solve.Options{}, nil); err != nil || r.Answer != want {
			t.Errorf("%v: %v, %v; want %v", m, r, err, want)
		}
		if r, err := solve.SolveAlternating(sys, solve.Options{Limits: smt.Limits{Steps: 10}}, nil); err != nil || r.Answer != smt.Unknown {
			t.Errorf("%v in 10 steps: %v, %v", m, r, err)
		}
		asked := 0
		stop := func() bool { asked++; return true }
		if r, err := solve.SolveAlternating(sys, solve.Options{Limits: smt.Limits{Steps: 10}}, stop); err != nil || r.Answer != smt.Unknown || asked != 1 {
			t.Errorf("%v, stopped after the first: %v, %v, asked %d times", m, r, err, asked)
		}
	}
}

// A limit ends the search with no answer, and a formula that is too large is not
// made.
func TestLimits(t *testing.T) {
	sys, err := constraints.New(figure2().Trace, model.PSO, constraints.CLAP{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := solve.Solve(sys, solve.Options{Limits: smt.Limits{Steps: 10}})
	if err != nil || r.Answer != smt.Unknown {
		t.Errorf("10 steps: %v, %v", r, err)
	}
	if _, err := constraints.New(figure5().Trace, model.SC, constraints.CLAP{}, 100); err == nil || !strings.Contains(err.Error(), "more than 100 comparisons") {
		t.Errorf("a limit of 100 comparisons: %v", err)
	}
	if _, err := constraints.New(figure2().Trace, model.PSO, constraints.Cores{}, 0); err == nil || !strings.Contains(err.Error(), "PSO") {
		t.Errorf("the h3 encoding under PSO: %v", err)
	}
}

// Another run of Z3 can read the text.
func TestText(t *testing.T) {
	sys, err := constraints.New(figure2().Trace, model.PSO, constraints.Pruned{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := solve.SMTLIB(sys, solve.Options{Within: shared})
	for _, want := range []string{"(declare-fun O0 () Int)", "(assert ", "(check-sat)"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}
