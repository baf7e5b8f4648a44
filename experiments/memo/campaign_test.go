package memo_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/memo"
	"github.com/heddle-dmt/heddle/experiments/schedules"
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

// campaign are programs of the suite with arguments that make short runs, as one line
// each: the seed, or what else is not in the preconditions, is what fresh inputs differ by.
var campaign = map[string]string{
	"fft":            "-m 4 -s 12345",
	"lu-contig":      "-n 16 -s 12345",
	"lu-non-contig":  "-n 16 -s 12345",
	"barnes":         "-n 8 -t 1 -s 12345",
	"blackscholes":   "-n 16 -r 1 -s 12345",
	"swaptions":      "-n 4 -t 20 -s 12345",
	"streamcluster":  "-n 8 -c 8 -d 2 -k 1 -l 2 -s 12345",
	"compressor":     "-n 4 -b 1 -s 12345",
	"scanner":        "-n 3 -k 1 -s 12345",
	"radix":          "-n 64 -r 4 -m 4 -s 12345",
	"water-nsquared": "-n 27 -t 1 -s 12345",
	"water-spatial":  "-n 27 -t 1 -s 12345",
	"fmm":            "-n 8 -t 1 -s 12345",
	"raytrace":       "-w 8 -n 2 -s 12345",
	"volrend":        "-m 2 -f 1 -s 12345",
}

// The same of programs of the suite, with two, three and four threads: HEDDLE_LONG, 200
// inputs of each kind, half an hour; HEDDLE_RUNS sets another number.
func TestSuiteCampaign(t *testing.T) {
	inputs := 200
	if runs, err := strconv.Atoi(os.Getenv("HEDDLE_RUNS")); err == nil {
		inputs = runs
	} else if os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("HEDDLE_LONG is not set")
	}
	for _, name := range slices.Sorted(maps.Keys(campaign)) {
		t.Run(name, func(t *testing.T) {
			p, err := programs.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			form := programs.Fixed
			if p.Has(programs.Buggy) {
				form = programs.Buggy
			}
			bin, err := p.Build(programs.Variant{Form: form, Optimize: 2, Debug: true})
			if err != nil {
				t.Fatal(err)
			}
			for threads := 2; threads <= 4; threads++ {
				args := append([]string{bin, "-p", strconv.Itoa(threads)}, strings.Fields(campaign[name])...)
				c := config(t.TempDir(), args...)
				c.Seed, c.MaxInstructions = uint64(threads), 30_000_000
				trySchedule(t, c, inputs)
			}
		})
	}
}

// trySchedule memoizes a run and tries its schedule on up to n other inputs of each
// kind; it tells how many there were. Runs of those that satisfy the preconditions
// follow the schedule and have no race that it does not order.
func trySchedule(t *testing.T, c heddle.Config, n int) (followed, refused int) {
	t.Helper()
	m := memoize(t, c, memo.Options{})
	good, bad := newFresh(t, c, m).inputs(n)
	for i, args := range good {
		with := c
		with.Args = args
		if why := memo.Admits(&with, m.File); why != "" {
			t.Errorf("%q satisfies the terms and is not admitted: %s", args[1:], why)
		}
		outputs := map[string]bool{}
		for k := range 2 {
			with.Seed, with.Cores, with.Sched.DelayRate = uint64(100*i+k), 2+(i+k)%7, 0.2
			r, out := enforced(t, with, m)
			if k == 0 {
				unordered(t, with, m)
			}
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
	set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%q: %d of %d constraints, %d terms, %d inputs followed, %d refused: %.300s",
		c.Args[1:], m.Kept, m.Constraints, m.Terms, len(good), len(bad), set)
	return len(good), len(bad)
}

// unordered records a run under a schedule, and looks for races that it does not order.
func unordered(t *testing.T, c heddle.Config, m *memo.Made) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	defer file.Close()
	c.Record = schedules.Recording(file)
	c.Record.Sync.Heap = true
	if r, _ := enforced(t, c, m); !r.Schedule.Followed {
		return
	}
	left, err := schedules.Unordered(path, m.File.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%q: %d races that the schedule does not order, the first %+v", c.Args[1:], len(left), left[0])
	}
}

// fresh makes inputs.
type fresh struct {
	args   []string
	set    *preconditions.Set
	check  *preconditions.Checker
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
	// Variables are not what these inputs differ by.
	about := *f.set
	about.Env = nil
	if f.check, err = preconditions.NewChecker(&about); err != nil {
		t.Fatal(err)
	}
	return f
}

// greatest is the greatest number that arguments are changed to: programs take as long.
const greatest = 64

// inputs are up to n that satisfy all terms and up to n that violate exactly one.
func (f *fresh) inputs(n int) (good, bad [][]string) {
	for try := 0; try < 100*n && (len(good) < n || len(bad) < n); try++ {
		args := f.change()
		if try < 2*n && try%2 == 0 && len(f.set.Derived) > 0 {
			args = f.model()
		}
		if args == nil || f.seen[fmt.Sprint(args)] {
			continue
		}
		f.seen[fmt.Sprint(args)] = true
		switch v := f.check.Violated(&preconditions.Input{Args: args}); {
		case v == 0 && len(good) < n:
			good = append(good, args)
		case v == 1 && len(bad) < n:
			bad = append(bad, args)
		}
	}
	return good, bad
}

// change changes one or two arguments: a number to another one, or to one of as many
// digits, or one byte of any argument.
func (f *fresh) change() []string {
	args := slices.Clone(f.args)
	if len(args) < 2 {
		return nil
	}
	for range 1 + f.random.IntN(2) {
		i := 1 + f.random.IntN(len(args)-1)
		n, err := strconv.Atoi(args[i])
		switch {
		case err != nil || f.random.IntN(6) == 0:
			text := []byte(args[i])
			text[f.random.IntN(len(text))] = byte('!' + f.random.IntN('~'-'!'))
			args[i] = string(text)
		case f.random.IntN(2) == 0:
			text := []byte(args[i])
			for k := range text {
				text[k] = byte('0' + f.random.IntN(10))
			}
			args[i] = string(text)
		default:
			args[i] = strconv.Itoa(max(0, []int{n + f.random.IntN(5) - 2, f.random.IntN(greatest), 2 * n, n / 2}[f.random.IntN(4)]))
			if f.random.IntN(6) == 0 {
				args[i] = "0" + args[i]
			}
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
