package tern_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// Inputs that satisfy a schedule's preconditions follow it, with one output under any seed;
// inputs that violate one term are not admitted. They come from Z3's models and from
// changes of the recorded arguments.
func TestCampaign(t *testing.T) {
	bin := gcctest.File(t, "../concolicrun/testdata/divide.c", "-fno-inline", "-no-pie")
	recorded := testsize.Sample([][]string{{"2", "2", "0"}, {"3", "30", "1"}, {"4", "9", "7"}}, 1, 0)
	inputs := testsize.Pick(8, 12, 200)
	for i, args := range recorded {
		c := config(t.TempDir(), append([]string{bin}, args...)...)
		c.Seed, c.MaxInstructions = uint64(1+i), 30_000_000
		if r := trySchedule(t, c, nil, inputs); r.followed < inputs/2 || r.refused < inputs/2 {
			t.Errorf("%d inputs followed, %d refused, of %d each", r.followed, r.refused, inputs)
		}
	}
}

// campaign are programs of the suite with arguments that make short runs; the other inputs
// differ by the seed, or by another argument that is not in the preconditions: for cholesky
// the greatest width of a supernode, for streamcluster the number of points in a chunk.
var campaign = map[string]string{
	"fft":            "-m 4 -s 123456",
	"lu-contig":      "-n 16 -s 123456",
	"lu-non-contig":  "-n 16 -s 123456",
	"barnes":         "-n 2 -t 1 -s 123456",
	"blackscholes":   "-n 16 -r 1 -s 123456",
	"swaptions":      "-n 4 -t 20 -s 123456",
	"streamcluster":  "-n 16 -d 2 -k 2 -l 4 -c 123456",
	"cholesky":       "-g 4 -w 000008",
	"compressor":     "-b 1 -o /out -i " + theFile,
	"scanner":        "-w thread -s 123456 -d " + theFolder,
	"radix":          "-n 6 -r 2 -m 1 -s 123456",
	"water-nsquared": "-n 27 -t 1 -s 123456",
	"water-spatial":  "-n 27 -t 1 -s 123456",
	"fmm":            "-n 8 -t 1 -s 123456",
	"raytrace":       "-w 1 -n 1 -s 123456",
	"volrend":        "-m 2 -f 1 -s 123456",
}

// TestSuiteCampaign does the same for programs of the suite, with two, three and four
// threads, and 200 inputs of each kind. In the smaller test sizes one program is tried on a
// few.
func TestSuiteCampaign(t *testing.T) {
	inputs, most := testsize.Runs(4, 6, 200), testsize.Pick(2, 2, 4)
	for _, name := range testsize.Pick([]string{"fft"}, []string{"fft"}, slices.Sorted(maps.Keys(campaign))) {
		t.Run(name, func(t *testing.T) {
			for threads := 2; threads <= most; threads++ {
				t.Run(strconv.Itoa(threads), func(t *testing.T) { tryProgram(t, name, threads, inputs) })
			}
		})
	}
}

// tryProgram tries the schedule of a program of the suite.
func tryProgram(t *testing.T, name string, threads, inputs int) {
	t.Helper()
	p, err := suite.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	form := suite.Fixed
	if p.Has(suite.Buggy) {
		form = suite.Buggy
	}
	bin, err := p.Build(suite.Variant{Form: form, Optimize: 2, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{bin, "-p", strconv.Itoa(threads)}, strings.Fields(campaign[name])...)
	var content []byte
	if slices.Contains(args, theFile) {
		content = []byte(strings.Repeat("to be or not to be, ", 75))
	}
	c := config(t.TempDir(), args...)
	c.Seed, c.MaxInstructions = uint64(threads), 30_000_000
	if slices.Contains(args, theFolder) {
		c.Mounts = append(c.Mounts, machine.Mount{Host: folder(t), Guest: theFolder})
	}
	r := trySchedule(t, c, content, inputs)
	all := ""
	if r.all {
		all = ", which is all that differ by the seed"
	}
	t.Logf("| %s `%s` | %d | %d | %d%s | %d | %d |", name, campaign[name], threads, r.terms, r.followed, all, r.left, r.refused)
}

// theFolder is where programs find files that are no input.
const theFolder = "/folder"

// folder makes a folder of three files.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range []string{"thread and needle", "a thread of thought, unread", "threads dread the thread"} {
		text = strings.Repeat(text+"\n", 10+5*i)
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// trial is the result of trying a schedule.
type trial struct {
	terms int
	// followed and refused count inputs of the two kinds that behaved as they must, left
	// the races that the schedule does not order.
	followed, left, refused int
	all                     bool // freshInputs.all
}

// trySchedule memoizes a run and tries its schedule on up to n other inputs of each kind:
// runs of inputs that satisfy the preconditions follow it, without a race that it does not
// order; Z3 agrees that each of the others violates one term.
func trySchedule(t *testing.T, c machine.Config, content []byte, n int) *trial {
	t.Helper()
	recorded := input{c.Args, content}
	m := memoize(t, recorded.under(t, c), tern.Options{})
	f := newFreshInputs(t, recorded, m, c.Seed)
	f.inputs(n)
	from := opened(t)
	if _, err := from.Add(m.File); err != nil {
		t.Fatal(err)
	}
	f.find = tern.NewFinder(from)
	r := &trial{terms: m.Terms, all: f.all}
	limits := 0
	for i := range f.good {
		switch f.follows(t, c, m, i, r) {
		case "limit": // too much work for a test
			limits++
		case "followed":
			r.followed++
		}
	}
	z3, skipped := smt.New(0), 0
	for i := range f.bad {
		in := &f.bad[i]
		with := in.under(t, c)
		if f.admitted(t, &with) {
			t.Errorf("%q violates a term and is admitted", in.args[1:])
			continue
		}
		violated, more := f.violated(z3, in)
		if violated > 1 || violated == 0 && more == 0 {
			t.Errorf("%q violates %d terms as Z3 evaluates them", in.args[1:], violated)
			continue
		}
		skipped += more
		r.refused++
	}
	t.Logf("%q: %d of %d constraints; %d inputs reach the limit; of %d terms Z3 evaluated all but %d: %.300s",
		c.Args[1:], m.Kept, m.Constraints, limits, m.Terms*len(f.bad), skipped, f.set)
	return r
}

// under returns the configuration that gives a run an input.
func (in *input) under(t *testing.T, c machine.Config) machine.Config {
	t.Helper()
	c.Args = in.args
	if in.content == nil {
		return c
	}
	file, err := os.CreateTemp(c.Dir, "input")
	if err == nil {
		_, err = file.Write(in.content)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.Mounts = append(slices.Clone(c.Mounts), machine.Mount{Host: file.Name(), Guest: theFile})
	return c
}

// follows runs an input that satisfies the preconditions, records it and looks for races
// that the schedule does not order. Every eighth input is run once more with another seed,
// number of cores and delays.
func (f *freshInputs) follows(t *testing.T, c machine.Config, m *tern.Schedule, i int, to *trial) string {
	t.Helper()
	in := &f.good[i]
	with := in.under(t, c)
	if !f.admitted(t, &with) {
		t.Errorf("%q satisfies the terms and is not admitted: %s", in.args[1:], tern.Admits(&with, m.File))
		return ""
	}
	vary := func(k int) {
		with.Seed, with.Cores, with.Sched.DelayRate = uint64(100*i+k), 2+(i+k)%7, 0.2
	}
	vary(0)
	r, out, left := unordered(t, with, m)
	to.left += left
	switch {
	case r.Outcome == "instruction limit":
		return "limit"
	case !r.Schedule.Followed:
		t.Errorf("%q: %s: %s", in.args[1:], r.Outcome, r.Schedule.Reason)
		return ""
	}
	if i%8 == 0 {
		vary(1)
		again, second := enforced(t, with, m)
		if !again.Schedule.Followed || second != out {
			t.Errorf("%q, seed %d: %s, %q instead of %q", in.args[1:], with.Seed, again.Schedule.Reason, second, out)
			return ""
		}
	}
	return "followed"
}

// admitted reports whether the schedule, from a cache, admits a run.
func (f *freshInputs) admitted(t *testing.T, c *machine.Config) bool {
	t.Helper()
	e, err := f.find.Find(c)
	if err != nil {
		t.Fatal(err)
	}
	return e != nil
}

// unordered records a run under a schedule, and counts the races that it does not order.
func unordered(t *testing.T, c machine.Config, m *tern.Schedule) (r *machine.Result, out string, races int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	defer file.Close()
	c.Record = peregrine.RecordConfig(file)
	c.Record.Sync.Heap = true
	if r, out = enforced(t, c, m); !r.Schedule.Followed {
		return r, out, 0
	}
	left, err := peregrine.UnorderedRaces(t.Context(), path, m.File.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%q: %d races that the schedule does not order, the first %+v", c.Args[1:], len(left), left[0])
	}
	return r, out, len(left)
}
