package solve_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/explore"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
	"github.com/heddle-dmt/heddle/analyses/h3/solve"
	"github.com/heddle-dmt/heddle/analyses/smt"
)

const states = 300_000 // at most, for each question to the explorer

// shared has the parts of Z3 that are costly to make.
var shared = smt.New(0)

// goals are questions about a recording: the values that it read, and values that it may have read.
func goals(r *rand.Rand, rec *explore.Recording) []explore.Goal {
	real := explore.Goal{}
	var reads []model.ID
	for t := range rec.Reads {
		for i, id := range rec.Reads[t] {
			real[id] = rec.Got[t][i]
			reads = append(reads, id)
		}
	}
	all := []explore.Goal{real}
	for range 2 {
		g := explore.Goal{}
		for range 1 + r.IntN(3) {
			if len(reads) > 0 {
				id := reads[r.IntN(len(reads))]
				g[id] = uint64(r.IntN(4))
				if rec.Trace.Events[id].Size == 2 && r.IntN(2) == 0 {
					g[id] |= uint64(r.IntN(4)) << 8
				}
			}
		}
		all = append(all, g)
	}
	return all
}

func setGoal(t *model.Trace, g explore.Goal) {
	t.Bug = nil
	for id := range t.Events {
		if v, ok := g[model.ID(id)]; ok {
			s := t.Events[id].Symbol
			t.Bug = append(t.Bug, model.Condition{Expr: t.Pool.Eq(s, t.Pool.Word(v, s.Bits)), Thread: -1})
		}
	}
}

// answer solves a recording's trace, and follows the schedule in the program.
func answer(t *testing.T, rec *explore.Recording, m model.MemoryModel, e constraints.Encoding, clocks solve.Clocks, g explore.Goal) smt.Answer {
	t.Helper()
	sys, err := constraints.New(rec.Trace, m, e, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, describe(rec, g))
	}
	res, err := solve.Solve(sys, solve.Options{Clocks: clocks, Within: shared})
	if err != nil {
		t.Fatalf("%v\n%s", err, describe(rec, g))
	}
	if res.Answer != smt.Satisfiable {
		return res.Answer
	}
	var steps []explore.Step
	for _, s := range res.Schedule {
		steps = append(steps, explore.Step(s))
	}
	got, err := rec.Follow(m, steps)
	if err != nil {
		t.Fatalf("%s: the program does not follow the schedule: %v", e.Name(), err)
	}
	for id, v := range got {
		if want, ok := g[id]; ok && v != want {
			t.Fatalf("%s: %s reads %d, not %d", e.Name(), rec.Trace.EventName(id), v, want)
		}
		if x := res.Values[rec.Trace.Events[id].Symbol.Name].Lo; x != v {
			t.Fatalf("%s: %s reads %d, the abstract machine says %d", e.Name(), rec.Trace.EventName(id), v, x)
		}
	}
	return res.Answer
}

// lazily solves with Z3 and the constraints that it needs; a schedule has been run.
func lazily(t *testing.T, tr *model.Trace, m model.MemoryModel, e constraints.Encoding, clocks solve.Clocks) *solve.LazyResult {
	t.Helper()
	r, err := solve.SolveLazily(tr, m, e, solve.Options{Clocks: clocks, Within: shared}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wanted(possible bool) smt.Answer {
	if possible {
		return smt.Satisfiable
	}
	return smt.Unsatisfiable
}

// The encodings agree with each other and with an exhaustive exploration on which goals are
// possible, and every schedule runs.
func TestEncodingsAgreeWithExploration(t *testing.T) {
	programs := 500
	if testing.Short() {
		programs = 60
	}
	yes, no, undecided, again := 0, 0, 0, 0
	for seed := range programs {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		p := explore.Random(r, 5)
		recorded := []model.MemoryModel{model.SC, model.TSO, model.PSO}[seed%3]
		rec := explore.Record(p, recorded, 1+r.IntN(len(p.Threads)), 4+r.IntN(16), r)
		if err := rec.Trace.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for n, g := range goals(r, rec) {
			setGoal(rec.Trace, g)
			m := recorded
			if n == 2 {
				m = []model.MemoryModel{model.SC, model.TSO, model.PSO}[r.IntN(3)]
			}
			for _, ordered := range []bool{false, true} {
				possible, decided := rec.Possible(m, g, ordered, states)
				if !decided {
					undecided++
					continue
				}
				if n == 0 && !possible {
					t.Fatalf("seed %d: the explorer does not find what was recorded", seed)
				}
				if possible {
					yes++
				} else {
					no++
				}
				encodings := []constraints.Encoding{constraints.CLAP{}, constraints.Pruned{FreeCores: true}}
				if ordered {
					encodings = []constraints.Encoding{constraints.Cores{}, constraints.Pruned{}}
				}
				found := search.Search(rec.Trace, m, search.Options{FreeCores: !ordered})
				if (found.Answer == search.Found) != possible || found.Answer == search.Limit {
					t.Fatalf("seed %d, goal %d under %v (recorded under %v), cores ordered %v: the search says %v, the explorer %v\n%s",
						seed, n, m, recorded, ordered, found.Answer, possible, describe(rec, g))
				}
				if _, err := schedule.Run(rec.Trace, m, found.Schedule); possible && err != nil {
					t.Fatalf("seed %d: what the search found does not run: %v\n%s", seed, err, describe(rec, g))
				}
				if possible {
					before, err := schedule.Run(rec.Trace, m, found.Schedule)
					if err != nil {
						t.Fatal(err)
					}
					after, err := schedule.Run(rec.Trace, m, schedule.Shorten(rec.Trace, m, found.Schedule))
					if err != nil || !maps.Equal(before, after) {
						t.Fatalf("seed %d under %v: shortened, the schedule reads %v instead of %v: %v\n%s", seed, m, after, before, err, describe(rec, g))
					}
				}
				for i, e := range encodings {
					if e.Supports(m) != nil {
						continue
					}
					clocks := solve.Clocks((seed + i) % 2)
					if a := answer(t, rec, m, e, clocks, g); a != wanted(possible) {
						t.Fatalf("seed %d, goal %d under %v (recorded under %v), cores ordered %v: %s says %v, the explorer %v\n%s",
							seed, n, m, recorded, ordered, e.Name(), a, possible, describe(rec, g))
					}
					if _, own := e.(constraints.Pruned); !own {
						r := lazily(t, rec.Trace, m, e, clocks)
						if r.Answer != wanted(possible) {
							t.Fatalf("seed %d, goal %d under %v, cores ordered %v: %s as needed says %v, the explorer %v\n%s",
								seed, n, m, ordered, e.Name(), r.Answer, possible, describe(rec, g))
						}
						if r.Rounds > 1 {
							again++
						}
					}
				}
			}
		}
	}
	t.Logf("%d possible, %d impossible, %d undecided; constraints were needed %d times", yes, no, undecided, again)
	if again < programs {
		t.Errorf("read-write constraints were needed %d times", again)
	}
	if undecided > programs/20 || no < programs/2 {
		t.Errorf("%d possible, %d impossible, %d undecided: the programs say little", yes, no, undecided)
	}
}

func describe(rec *explore.Recording, g explore.Goal) string {
	s := ""
	for i := range rec.Trace.Threads {
		for _, id := range rec.Trace.Threads[i].Events {
			e := &rec.Trace.Events[id]
			s += fmt.Sprintf("%2d %s core %d place %d addr %d size %d", id, rec.Trace.EventName(id), e.Core, e.CoreInstructions, e.Addr, e.Size)
			if e.Value != nil {
				s += fmt.Sprintf(" value %v", e.Value)
			}
			if v, ok := g[id]; ok {
				s += fmt.Sprintf(" goal %d", v)
			}
			s += "\n"
		}
	}
	for _, c := range rec.Trace.Path {
		s += fmt.Sprintf("path %v\n", c.Expr)
	}
	return s
}
