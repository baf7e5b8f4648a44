package tern_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// built returns a program of the suite, in its fixed form.
func built(t *testing.T, name string) string {
	t.Helper()
	p, err := suite.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Fixed, Optimize: 2, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// texts returns a schedule's preconditions in readable form.
func texts(t *testing.T, m *tern.Schedule) []string {
	t.Helper()
	set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
	if err != nil {
		t.Fatal(err)
	}
	return set.Texts()
}

// PEREGRINE's best cases (section 7.3): preconditions fix numbers of threads and sizes,
// never data. Data come from a seed, the last argument; the terms only require that the
// program accepts it and that it has the same number of digits. Other seeds follow the
// schedule.
func TestDataIsNoPrecondition(t *testing.T) {
	for i, line := range []string{
		"lu-contig -p 2 -n 32 -s 12345",
		"fft -p 2 -m 4 -s 12345",
		"blackscholes -p 2 -n 16 -r 1 -s 12345",
		"swaptions -p 2 -n 4 -t 20 -s 12345",
	} {
		args := strings.Fields(line)
		t.Run(args[0], func(t *testing.T) {
			if testing.Short() && i > 0 {
				t.Skip("one program is enough")
			}
			args[0] = built(t, args[0])
			c := config(t.TempDir(), args...)
			m := memoize(t, c, tern.Options{})
			list, seed := texts(t, m), len(args)-1
			t.Logf("%d constraints, %d in the slice: %s", m.Constraints, m.Kept, strings.Join(list, " ∧ "))
			about := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.Contains(s, fmt.Sprintf("argv[%d]", seed)) })
			want := []string{
				fmt.Sprintf("-1 < strtol(argv[%d])", seed), fmt.Sprintf("strtol(argv[%d]) < 1000001", seed),
				fmt.Sprintf("argv[%d][0:5] in '0'..'9'", seed), fmt.Sprintf("argv[%d][5] = 0", seed),
			}
			if !slices.Equal(about, want) {
				t.Errorf("of the seed is asked %q, want %q", about, want)
			}
			r := rand.New(rand.NewPCG(61, uint64(i)))
			for k := range 3 {
				c.Args = slices.Clone(args)
				c.Args[seed] = strconv.Itoa(10_000 + r.IntN(90_000))
				c.Seed = uint64(k)
				follows(t, c, m)
			}
		})
	}
}

// follows runs an admitted input under the schedule and compares with the native output.
func follows(t *testing.T, c machine.Config, m *tern.Schedule) {
	t.Helper()
	if why := tern.Admits(&c, m.File); why != "" {
		t.Errorf("%q: %s", c.Args[1:], why)
		return
	}
	result, out := enforced(t, c, m)
	if !result.Schedule.Followed {
		t.Errorf("%q: %s", c.Args[1:], result.Schedule.Reason)
	}
	native, err := exec.Command(c.Args[0], c.Args[1:]...).Output()
	if err != nil || out != string(native) {
		t.Errorf("%q: %q, natively %q: %v", c.Args[1:], out, native, err)
	}
}

// Streamcluster's data come from numbers inside the program, as in PARSEC: its
// preconditions are numbers of threads, points, dimensions and centres, and that a chunk
// holds all points.
func TestStreamcluster(t *testing.T) {
	testsize.SkipQuick(t)
	args := append([]string{built(t, "streamcluster")}, strings.Fields("-p 2 -n 16 -c 16 -d 2 -k 2 -l 4")...)
	c := config(t.TempDir(), args...)
	m := memoize(t, c, tern.Options{})
	list := slices.DeleteFunc(texts(t, m), func(s string) bool { return !strings.Contains(s, "strtol") })
	want := []string{
		"strtol(argv[6]) < 1000001", "strtol(argv[4]) = 16", "strtol(argv[4]) ≤ strtol(argv[6])",
		"strtol(argv[8]) = 2", "strtol(argv[10]) = 2", "strtol(argv[12]) = 4", "strtol(argv[2]) = 2",
	}
	if !slices.Equal(list, want) {
		t.Errorf("%d constraints, %d in the slice: %q, want %q", m.Constraints, m.Kept, list, want)
	}
	c.Args = slices.Clone(args)
	c.Args[6] = "99"
	follows(t, c, m)
	c.Args[6] = "15"
	if tern.Admits(&c, m.File) == "" {
		t.Error("two chunks are admitted")
	}
}

// The compressor's data come from a file, of which only the size matters.
func TestFileIsNoPrecondition(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Repeat([]byte(text), 75), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("to be or not to be, ")
	c := config(dir, built(t, "compressor"), "-p", "2", "-b", "1", "-i", file, "-o", filepath.Join(dir, "out"))
	m := memoize(t, c, tern.Options{})
	list := strings.Join(texts(t, m), " ∧ ")
	t.Logf("%d constraints, %d in the slice: %s", m.Constraints, m.Kept, list)
	if strings.Contains(list, "file(") || !strings.Contains(list, "size(argv[6])") {
		t.Errorf("they are about the file's bytes, or not about its size: %s", list)
	}
	write("whether 'tis nobler ")
	follows(t, c, m)
}

// Barnes takes the time step and the end time as floating-point numbers, on which PEREGRINE
// collected no preconditions (section 7.3). Here preconditions are about both. Other values
// that satisfy them follow the schedule; another number of steps is refused.
func TestBarnes(t *testing.T) {
	testsize.SkipQuick(t)
	bin := built(t, "barnes")
	with := func(step, stop string) machine.Config {
		return config(t.TempDir(), bin, "-p", "2", "-n", "4", "-d", step, "-e", stop)
	}
	m := memoize(t, with("0.01", "0.02"), tern.Options{})
	all := strings.Join(texts(t, m), " ∧ ")
	for _, want := range []string{"strtod(argv[6])", "strtod(argv[8])", "<f", "strtol(argv[2]) = 2", "strtol(argv[4]) = 4"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in the preconditions", want)
		}
	}
	admitted := 0
	for i, x := range [][2]string{{"0.01", "0.021"}, {"0.0101", "0.0201"}, {"0.010001", "0.02"}, {"0.00999", "0.0200"}, {"0.0100001", "0.02"}} {
		c := with(x[0], x[1])
		c.Seed = uint64(i)
		if why := tern.Admits(&c, m.File); why != "" {
			t.Logf("%v is not admitted: %.200s", x, why)
			continue
		}
		admitted++
		follows(t, c, m)
	}
	if admitted < 2 {
		t.Errorf("%d other times are admitted", admitted)
	}
	for _, x := range [][2]string{{"0.01", "0.03"}, {"0.01", "0.01"}, {"0.02", "0.02"}, {"0.005", "0.02"}, {"0.01", "nan"}} {
		if c := with(x[0], x[1]); tern.Admits(&c, m.File) == "" {
			t.Errorf("%v is admitted, and has another number of steps", x)
		}
	}
	t.Logf("%d constraints, %d in the slice, %d terms", m.Constraints, m.Kept, m.Terms)
}
