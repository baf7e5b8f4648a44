package peregrine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Every racy program of the suite follows its portable schedule, which finds the instructions of
// constraints by counting how often they are reached.
func TestPortableSchedulesAreFollowed(t *testing.T) {
	for _, p := range racyPrograms(t) {
		t.Run(p.Name, func(t *testing.T) {
			c := suiteConfig(t, p.Name)
			m := made(t, c, peregrine.Options{Portable: true})
			outputs := map[string]int{}
			for _, v := range varied(c, testsize.Runs(1, 3, 4)) {
				r, out := enforced(t, v, m, enforce.Options{})
				if !r.Schedule.Followed {
					out = r.Schedule.Reason
					t.Error(out)
				}
				outputs[out]++
			}
			t.Logf("%d operations, %+v, free %v", len(m.Schedule.Operations), m.Counts, m.Schedule.Free)
			if len(outputs) != 1 {
				t.Errorf("outputs: %v", outputs)
			}
		})
	}
}

// A thread whose slice ends just where an operation does is at an instruction of a
// constraint there all the same, as happens in this run.
func TestSlicesThatEndWithOperations(t *testing.T) {
	c := suiteConfig(t, "apache-45605")
	m := made(t, c, peregrine.Options{Portable: true})
	if r, _ := enforced(t, varied(c, 16)[15], m, enforce.Options{}); !r.Schedule.Followed {
		t.Error(r.Schedule.Reason)
	}
}

// Runs that follow a portable schedule have no race that it does not order; without its
// constraints they have.
func TestNothingIsLeftUnordered(t *testing.T) {
	for _, name := range []string{"fft", "lu-non-contig", "benign-redundant-write", "mysql-12848"} {
		t.Run(name, func(t *testing.T) {
			c := suiteConfig(t, name)
			m := made(t, c, peregrine.Options{Portable: true})
			v := varied(c, 3)[2]
			file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			v.Record = peregrine.RecordConfig(file)
			if r, _ := enforced(t, v, m, enforce.Options{}); !r.Schedule.Followed {
				t.Fatal(r.Schedule.Reason)
			}
			loose := *m.Schedule
			loose.Constraints = nil
			for s, want := range map[*event.Schedule]bool{m.Schedule: false, &loose: true} {
				left, err := peregrine.UnorderedRaces(t.Context(), file.Name(), s)
				if err != nil {
					t.Fatal(err)
				}
				if len(left) > 0 != want {
					t.Errorf("%d races are not ordered by %d constraints: %+v", len(left), len(s.Constraints), left)
				}
			}
		})
	}
}

// The program of PEREGRINE's figure 3, recorded on "2 2 0", follows its schedule on
// other inputs of two threads, among them the paper's; on three threads, and with the
// other branch of L7, it does not, and says so.
func TestFigure3OnOtherInputs(t *testing.T) {
	testsize.SkipQuick(t)
	bin := gcctest.File(t, "../concolicrun/testdata/divide.c", "-fno-inline", "-no-pie")
	for seed := uint64(1); seed <= 4; seed++ {
		with := config(bin, "2", "2", "0")
		with.Seed = seed
		m := made(t, with, peregrine.Options{Portable: true})
		for _, x := range []struct {
			args     []string
			followed bool
		}{
			{[]string{"2", "2", "0"}, true},
			{[]string{"2", "1000", "8"}, true},
			{[]string{"2", "77777", "-123456"}, true},
			{[]string{"3", "1000", "8"}, false},
			{[]string{"1", "1000", "8"}, false},
		} {
			for _, v := range varied(config(append([]string{bin}, x.args...)...), 4) {
				if r, out := enforced(t, v, m, enforce.Options{}); r.Schedule.Followed != x.followed {
					t.Errorf("seed %d, %q: followed %v: %s %s", seed, x.args, r.Schedule.Followed, r.Schedule.Reason, out)
				}
			}
		}
	}
}
