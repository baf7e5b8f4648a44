package memo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/memo"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// Inputs that satisfy a schedule's preconditions follow it, with one output under any
// seed; inputs that violate one of them are not admitted. They come from Z3's models and
// from changes of the recorded arguments.
func TestCampaign(t *testing.T) {
	bin := gcctest.File(t, "../follow/testdata/divide.c", "-fno-inline", "-no-pie")
	recorded, inputs := [][]string{{"2", "2", "0"}}, 12
	if os.Getenv("HEDDLE_LONG") != "" {
		recorded, inputs = [][]string{{"2", "2", "0"}, {"3", "30", "1"}, {"4", "9", "7"}}, 200
	}
	for i, args := range recorded {
		c := config(t.TempDir(), append([]string{bin}, args...)...)
		c.Seed, c.MaxInstructions = uint64(1+i), 30_000_000
		if followed, refused := trySchedule(t, c, inputs); followed < inputs/2 || refused < inputs/2 {
			t.Errorf("%d inputs followed, %d refused, of %d each", followed, refused, inputs)
		}
	}
}

// The same of the suite's racy programs: HEDDLE_LONG, hours.
func TestSuiteCampaign(t *testing.T) {
	if os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("HEDDLE_LONG is not set")
	}
	all, err := programs.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		// Asynchronous cancellation has no place in a schedule (docs/schedules.md).
		if !p.Has(programs.Buggy) || p.Kind == programs.Memory || p.Name == "downloader" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			bin, err := p.Build(programs.Variant{Form: programs.Buggy, Optimize: 2, Debug: true})
			if err != nil {
				t.Fatal(err)
			}
			for seed := uint64(1); seed <= 3; seed++ {
				c := config(t.TempDir(), append([]string{bin}, p.CommandLine(p.Trigger(), 4)...)...)
				c.Seed, c.MaxInstructions = seed, 30_000_000
				trySchedule(t, c, 200)
			}
		})
	}
}

// trySchedule memoizes a run and tries its schedule on up to n other inputs of each
// kind; it tells how many there were.
func trySchedule(t *testing.T, c heddle.Config, n int) (followed, refused int) {
	t.Helper()
	m := memoize(t, c, memo.Options{})
	f := newFresh(t, c, m)
	good, bad := f.inputs(n)
	for i, args := range good {
		with := c
		with.Args = args
		outputs := map[string]bool{}
		for k := range 2 {
			with.Seed, with.Cores, with.Sched.DelayRate = uint64(100*i+k), 2+(i+k)%7, 0.2
			if why := memo.Admits(&with, m.File); why != "" {
				t.Errorf("%q satisfies the terms and is not admitted: %s", args[1:], why)
			}
			r, out := enforced(t, with, m)
			if r.Outcome == "limit" {
				continue // too much work for a test
			}
			if !r.Schedule.Followed {
				t.Errorf("%q: %s", args[1:], r.Schedule.Reason)
			}
			outputs[out] = true
		}
		if len(outputs) > 1 {
			t.Errorf("%q has %d outputs", args[1:], len(outputs))
		}
	}
	for _, args := range bad {
		with := c
		with.Args = args
		if memo.Admits(&with, m.File) == "" {
			t.Errorf("%q violates a term and is admitted", args[1:])
		}
	}
	t.Logf("%q: %d of %d constraints, %d terms, %d inputs followed, %d refused", c.Args[1:], m.Kept, m.Constraints, m.Terms, len(good), len(bad))
	return len(good), len(bad)
}

// fresh makes inputs.
type fresh struct {
	args   []string
	set    *preconditions.Set
	terms  []*preconditions.Checker // of each alone
	pool   *symbolic.Pool
	random *rand.Rand
	seen   map[string]bool
}

func newFresh(t *testing.T, c heddle.Config, m *memo.Made) *fresh {
	t.Helper()
	f := &fresh{args: c.Args, pool: symbolic.NewPool(), random: rand.New(rand.NewPCG(c.Seed, 8)), seen: map[string]bool{}}
	var err error
	if f.set, err = preconditions.Parse(m.File.Preconditions, f.pool); err != nil {
		t.Fatal(err)
	}
	for _, term := range f.set.Terms {
		one, err := preconditions.NewChecker(&preconditions.Set{Args: f.set.Args, Derived: f.set.Derived, Terms: []*symbolic.Expr{term}})
		if err != nil {
			t.Fatal(err)
		}
		f.terms = append(f.terms, one)
	}
	return f
}

// greatest is the greatest number that arguments are changed to: programs take as long.
const greatest = 64

// inputs are up to n that satisfy all terms and up to n that violate exactly one.
func (f *fresh) inputs(n int) (good, bad [][]string) {
	for try := 0; try < 100*n && (len(good) < n || len(bad) < n); try++ {
		args := f.change()
		if try < 2*n && try%2 == 0 {
			args = f.model()
		}
		if args == nil || f.seen[fmt.Sprint(args)] {
			continue
		}
		f.seen[fmt.Sprint(args)] = true
		switch v := f.violated(args); {
		case v == 0 && len(good) < n:
			good = append(good, args)
		case v == 1 && len(bad) < n:
			bad = append(bad, args)
		}
	}
	return good, bad
}

// violated counts the terms that arguments violate.
func (f *fresh) violated(args []string) int {
	count := 0
	for _, c := range f.terms {
		if failed, _ := c.Check(&preconditions.Input{Args: args}); failed >= 0 {
			count++
		}
	}
	return count
}

// change changes one or two arguments.
func (f *fresh) change() []string {
	args := slices.Clone(f.args)
	for range 1 + f.random.IntN(2) {
		if len(args) < 2 {
			return nil
		}
		i := 1 + f.random.IntN(len(args)-1)
		n, err := strconv.Atoi(args[i])
		if err != nil {
			return nil
		}
		args[i] = strconv.Itoa(max(0, []int{n + f.random.IntN(5) - 2, f.random.IntN(greatest), 2 * n, n / 2}[f.random.IntN(4)]))
		if f.random.IntN(6) == 0 {
			args[i] = "0" + args[i]
		}
	}
	return args
}

// model is a model of the terms, or of all but one and that one's negation, with numbers
// that programs can cope with; nil: there is none that arguments can say.
func (f *fresh) model() []string {
	s := smt.New(200_000)
	not := f.random.IntN(2*len(f.set.Terms) + 1)
	for i, t := range f.set.Terms {
		if i == not {
			t = f.pool.Not(t)
		}
		s.Assert(t)
	}
	for name, d := range f.set.Derived {
		x := f.pool.Symbol(name, d.Bits)
		s.Assert(f.pool.SLT(x, f.pool.Word(greatest, d.Bits)))
		s.Assert(f.pool.SLE(f.pool.Word(uint64(f.random.IntN(4)), d.Bits), x))
	}
	if s.Check() != smt.Satisfiable {
		return nil
	}
	args := slices.Clone(f.args)
	model := s.Model()
	for name, d := range f.set.Derived {
		var i int
		if _, err := fmt.Sscanf(d.Input, "argv[%d]", &i); err != nil || i >= len(args) {
			return nil
		}
		if v, known := model[name]; known {
			args[i] = strconv.Itoa(int(int32(v.Lo)))
		}
	}
	return args
}
