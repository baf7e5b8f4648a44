package frost_test

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/sched"
)

// mostSeeds is how many seeds are looked at for each trial that is wanted.
const mostSeeds = 40

// exhibit is how configs/frost/table2.yaml has a bug shown.
type exhibit struct {
	Name      string   `mapstructure:"name"`
	Paper     string   `mapstructure:"paper"`
	Arguments string   `mapstructure:"arguments"`
	Schedule  []string `mapstructure:"schedule"`
	Outcomes  []string `mapstructure:"outcomes"`
	Why       string   `mapstructure:"why"`
}

// exhibits are the bugs of table 2.
func exhibits(t *testing.T) (list []exhibit) {
	t.Helper()
	var file struct {
		Trials int       `mapstructure:"trials"`
		Hang   uint64    `mapstructure:"hang"`
		Bugs   []exhibit `mapstructure:"bugs"`
	}
	if _, err := yamlfile.Load("../../configs/frost/table2.yaml", &file); err != nil {
		t.Fatal(err)
	}
	return file.Bugs
}

// exhibited is how a program's bug is shown: as the file has it, or as its description.
func exhibited(t *testing.T, p suite.Program) exhibit {
	t.Helper()
	for _, e := range exhibits(t) {
		if e.Name == p.Name {
			return e
		}
	}
	return exhibit{Name: p.Name, Schedule: p.Schedule, Arguments: p.Trigger()}
}

// command is the command line of the exhibit.
func (e *exhibit) command(bin string) []string {
	return append([]string{bin}, strings.Fields(e.Arguments)...)
}

// wrong reports whether a run did not end as the fixed form does.
func (x trial) wrong(p suite.Program, want trial) bool {
	return x.Failure != "" || x.Result.ExitCode != 0 || p.Output == suite.Same && x.stdout != want.stdout
}

// shows reports whether the bug manifests in a run under Frost's shepherding, as it
// does in the paper's trials (section 4.1.1): the thread-parallel replica alone, with
// nothing that survives anything, ends wrong.
func (e *exhibit) shows(t *testing.T, p suite.Program, bin string, seed uint64, want trial) bool {
	o := options()
	o.DetectOnly, o.Sample = true, 0
	return try(t, o, schedule(t, e.Schedule), seed, e.command(bin)...).wrong(p, want)
}

// TestBugsAreDetectedAndSurvived: in each trial in which the bug of a program of
// table 2 manifests, under the schedule that shows it, it is detected, and the run
// ends as the fixed form's does. Trials in which it does not are survived, too.
func TestBugsAreDetectedAndSurvived(t *testing.T) {
	for _, e := range exhibits(t) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			p, bin := find(t, e.Name, suite.Buggy)
			_, fixed := find(t, e.Name, suite.Fixed)
			want := try(t, options(), sched.Options{}, 1, e.command(fixed)...)
			left := trials(1, 100)
			first := map[complementary.Combination]int{}
			seed := uint64(1)
			for ; left > 0 && seed <= uint64(mostSeeds*trials(1, 100)); seed++ {
				showed := e.shows(t, p, bin, seed, want)
				if !showed && seed > 1 {
					continue
				}
				x := try(t, options(), schedule(t, e.Schedule), seed, e.command(bin)...)
				if x.wrong(p, want) {
					t.Errorf("seed %d: status %d, prints %q\n%s", seed, x.Result.ExitCode, x.stdout, x.text())
				}
				if !showed {
					continue
				}
				left--
				if x.Verdict != frost.Survived && x.Verdict != frost.Avoided {
					t.Errorf("seed %d: the bug shows and is not detected: %s", seed, x.text())
				} else {
					first[x.Combinations()[0]]++
				}
			}
			if left > 0 {
				t.Errorf("%d trials are missing after %d seeds", left, seed-1)
			}
			t.Logf("%d seeds: %v", seed-1, first)
		})
	}
}

// TestReadsAreCompared: in runs in which nothing makes the bug show, and in which no
// outcome differs, the races of the programs that Frost's outcomes miss show in the values
// that threads read; happens-before finds them in the same executions (table 3). In the
// fixed forms all replicas read the same.
func TestReadsAreCompared(t *testing.T) {
	list := []string{"mysql-2011", "mysql-3596", "glibc-12486"}
	if trials(1, 5) > 1 {
		list = bugs
	}
	for _, name := range list {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			o.DetectOnly, o.CompareReads = true, true
			how := sched.Options{Policy: sched.Timed, Quantum: 200}
			p, bin := build(t, name, suite.Variant{Form: suite.Buggy, Optimize: 2, Static: true, Debug: true})
			_, fixed := find(t, name, suite.Fixed)
			for seed := range uint64(trials(1, 5)) {
				args := append([]string{bin}, p.CommandLine(p.Arguments.Test, 4)...)
				c := configuration(how, seed+1, args...)
				r, err := frost.Run(t.Context(), c, o)
				if err != nil {
					t.Fatal(err)
				}
				all, err := frost.AllRaces(t.Context(), c, r)
				if err != nil {
					t.Fatal(err)
				}
				if found := names(p, all); found && r.Races+r.Harmless == 0 {
					t.Errorf("seed %d: happens-before finds a race that Frost misses", seed+1)
				}
				args[0] = fixed
				if x := try(t, o, how, seed+1, args...); x.Races+x.Harmless > 0 {
					t.Errorf("seed %d, fixed form: %s", seed+1, x.text())
				}
			}
		})
	}
}

// joined are pairs of programs with bugs, executed side by side in one process, with
// the combinations of table 1 that their first epoch with a race may have.
var joined = []struct {
	names    [2]string
	schedule string
}{
	// One fails if the main thread comes first, the other if it comes last.
	{[2]string{"scanner", "frost-figure-1a"}, "--sched random"},
	{[2]string{"frost-figure-1a", "apache-25520"}, "--sched random --quantum 200"},
	{[2]string{"frost-figure-1a", "mysql-644"}, "--sched random --quantum 200"},
	{[2]string{"frost-figure-1a", "mysql-12848"}, "--sched random --granularity instruction --quantum 40"},
	{[2]string{"apache-25520", "glibc-12486"}, "--sched random --granularity instruction --quantum 40"},
	{[2]string{"mysql-791", "apache-25520"}, "--sched random --granularity instruction --quantum 40"},
	{[2]string{"mysql-3596", "mysql-2011"}, "--sched random --granularity instruction --quantum 40"},
}

// TestEpochsWithSeveralBugs: epochs with two bugs are survived, and have one of the
// combinations of table 1; all pairs together to the ones that only several bugs explain.
func TestEpochsWithSeveralBugs(t *testing.T) {
	seen := map[complementary.Combination]int{}
	for _, pair := range joined {
		bin, err := suite.Join(suite.Variant{Form: suite.Buggy, Optimize: 2, Static: true}, pair.names[:]...)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{bin}
		for i, name := range pair.names {
			p, err := suite.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				args = append(args, "--")
			}
			e := exhibited(t, p)
			args = append(args, e.command(bin)[1:]...)
		}
		for seed := uint64(1); seed <= uint64(trials(2, 40)); seed++ {
			x := try(t, options(), schedule(t, strings.Fields(pair.schedule)), seed, args...)
			if x.Failure != "" || x.Result.ExitCode != 0 || strings.Count(x.stdout, "correct") != 2 {
				t.Errorf("%v, seed %d: status %d, prints %q\n%s", pair.names, seed, x.Result.ExitCode, x.stdout, x.text())
			}
			for _, e := range x.Epochs {
				if e.Race && e.Combination.Diagnose().Bug == "" {
					t.Errorf("%v, seed %d: %s is not in table 1", pair.names, seed, e.Combination)
				}
				if e.Race {
					seen[e.Combination.Canonical()]++
				}
			}
		}
	}
	t.Logf("%v", seen) // of few seeds no more is asked
	for _, c := range []complementary.Combination{"A-BF", "A-FF"} {
		if seen[c] == 0 && trials(2, 40) >= 8 {
			t.Errorf("no epoch has the combination %s: %v", c, seen)
		}
	}
}
