package slice_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// seeded are programs of PEREGRINE's section 7.3 whose data come from a seed, the last
// argument, with the least share of their branches that slicing must leave out, in percent.
var seeded = []struct {
	stand
	least float64
}{
	{stand{"blackscholes", []string{"-p", "2", "-n", "32", "-r", "2", "-s", "1"}}, 95},
	{stand{"fft", []string{"-p", "2", "-m", "6", "-s", "1"}}, 80},
	{stand{"lu-contig", []string{"-p", "2", "-n", "32", "-s", "1"}}, 95},
	{stand{"swaptions", []string{"-p", "2", "-n", "2", "-t", "20", "-s", "1"}}, 95},
}

// The kept constraints of these programs hold for other data of the same size, which follow
// the schedule, with one result: section 7.3's best case.
func TestDataIsLeftOut(t *testing.T) {
	for i, p := range seeded {
		if testing.Short() && i > 0 {
			break
		}
		t.Run(p.name, func(t *testing.T) {
			r := p.record(t)
			s := r.sliced(t, p.least)
			for seed := range 10 {
				args := slices.Clone(r.config.Args)
				args[len(args)-1] = strconv.Itoa(seed)
				if broken := r.broken(t, s, args, nil); broken != "" {
					t.Errorf("seed %d: %s", seed, broken)
				} else if seed == 7 {
					r.enforce(t, p.name, args)
				}
			}
		})
	}
}

// The kept constraints of the compressor hold for any file of the same size.
func TestContentIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in")
	text := bytes.Repeat([]byte("to be or not to be, "), 75)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	st := stand{"compressor", []string{"-p", "2", "-b", "1", "-i", file, "-o", filepath.Join(dir, "out")}}
	c := st.config(t)
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir})
	r := record(t, c, func(e *event.Input) bool {
		return arguments(e) || e.Source == event.InputFile && e.Name == file
	})
	s := r.sliced(t, 95)
	for i := range text {
		text[i] = byte(i*i>>3) + 11
	}
	if broken := r.broken(t, s, c.Args, text); broken != "" {
		t.Error(broken)
	}
}

// sliced slices the run; it must leave out at least a share of the branches, in percent.
func (r *recorded) sliced(t *testing.T, least float64) *slice.Slice {
	t.Helper()
	s := slice.Make(r.input, slice.DefaultOptions())
	left := 100 - 100*float64(s.Stats.KeptBranches)/float64(s.Stats.Branches)
	t.Logf("%d of %d branches, %d of %d constraints, for the reasons %v", s.Stats.KeptBranches, s.Stats.Branches,
		s.Stats.KeptConstraints, s.Stats.Constraints, s.Stats.Reasons)
	if left < least {
		t.Errorf("%.1f %% of the branches are left out, want %.0f", left, least)
	}
	return s
}

// broken returns a kept constraint that does not hold for other arguments, and another
// content of the file that they name.
func (r *recorded) broken(t *testing.T, s *slice.Slice, args []string, content []byte) string {
	t.Helper()
	e := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
		var i, at int
		if n, _ := fmt.Sscanf(name, "strtol(argv[%d])", &i); n == 1 {
			x, err := strconv.Atoi(args[i])
			return symbolic.Value{Lo: uint64(x)}, err == nil
		}
		if n, _ := fmt.Sscanf(name, "argv[%d][%d]", &i, &at); n == 2 {
			return symbolic.Value{Lo: uint64((args[i] + "\x00")[at])}, true
		}
		if _, place, ok := strings.Cut(name, ")["); ok && strings.HasPrefix(name, "file(") {
			at, err := strconv.Atoi(strings.TrimSuffix(place, "]"))
			return symbolic.Value{Lo: uint64(content[at])}, err == nil
		}
		return symbolic.Value{}, false
	})
	for n := range r.trace.Threads {
		reasons := s.Reasons(n)
		for i, c := range s.Constraints(n) {
			v, err := e.Value(c.Expr())
			if err != nil {
				t.Fatal(err)
			}
			if text := c.Expr().String(); v.Lo == 0 {
				return fmt.Sprintf("%v %v: %s", reasons[i], c.Kind, text[:min(200, len(text))])
			}
		}
	}
	return ""
}
