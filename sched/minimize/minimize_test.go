package minimize

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Random tests draw the same numbers in every run; -rapid.seed chooses others.
func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}

// repeat is rounds of a body, with the count in register 3, and then exit.
func repeat(rounds int, body ...op) []op {
	all := append([]op{{"set", 3, -rounds}}, body...)
	for i := range all {
		if all[i].do == "jump" || all[i].do == "back" {
			all[i].y++
		}
	}
	return append(all, op{"add", 3, 1}, op{"jump", 3, 1}, op{"exit", 0, 0})
}

// lostUpdate: two threads add to word 0 without a lock.
func lostUpdate(rounds int) program {
	add := repeat(rounds, op{"load", 0, 0}, op{"add", 0, 1}, op{"store", 0, 0})
	return program{threads: [][]op{add, add}, fails: func(m *toy) bool { return m.words[0] < 2*rounds }}
}

// lostIncrement: two threads increment word 0 by instructions that are not atomic.
func lostIncrement(rounds int) program {
	add := repeat(rounds, op{"inc", 0, 0})
	return program{threads: [][]op{add, add}, fails: func(m *toy) bool { return m.words[0] < 2*rounds }}
}

// both: each thread sets its own word and looks at the other's; both see 0 in one
// round only if stores are late (x86-TSO, example SB).
func both(fence bool) program {
	side := func(mine, other int) []op {
		f := op{"add", 2, 0}
		if fence {
			f.do = "fence"
		}
		return []op{
			{"set", 0, 1},
			{"add", 2, 0},
			{"add", 2, 0},
			{"store", mine, 0},
			f,
			{"load", 1, other},
			{"store", 4 + mine, 1},
			{"set", 0, 1},
			{"store", 2 + mine, 0},
			{"exit", 0, 0},
		}
	}
	return program{
		threads: [][]op{side(0, 1), side(1, 0)}, tso: true,
		fails: func(m *toy) bool {
			return m.words[2] == 1 && m.words[3] == 1 && m.words[4] == 0 && m.words[5] == 0
		},
	}
}

// handover: a thread waits with PAUSE for word 1, which another thread sets after it has written
// word 0 twice; it reads the second value, unless the first store comes between two of its loads.
func handover(rounds int) program {
	writer := repeat(rounds,
		op{"set", 0, 1}, op{"store", 0, 0}, op{"set", 0, 2}, op{"store", 0, 0}, // word 0: 1, then 2
		op{"set", 1, 1}, op{"store", 1, 1}, // ready
		op{"load", 1, 1}, op{"back", 1, 11}, op{"pause", 0, 0}, op{"set", 2, 1}, op{"jump", 2, 6}, // until it was taken
	)
	reader := repeat(rounds,
		op{"load", 1, 1}, op{"jump", 1, 5}, op{"pause", 0, 0}, op{"set", 2, 1}, op{"jump", 2, 0},
		op{"load", 0, 0}, op{"add", 0, -2}, op{"back", 0, 10}, op{"set", 2, 1}, op{"store", 6, 2},
		op{"set", 1, 0}, op{"store", 1, 1},
	)
	// An intruder writes 1 to word 0 at some time.
	intruder := []op{{"set", 0, 1}, {"store", 0, 0}, {"exit", 0, 0}}
	return program{
		threads: [][]op{writer, reader, intruder},
		fails:   func(m *toy) bool { return m.words[6] == 1 },
	}
}

func TestFindsTheShortest(t *testing.T) {
	for _, c := range []struct {
		name           string
		p              program
		quantum        uint64
		switches, held int
	}{
		// Read by one, all of the other, the rest of the first.
		{"lost update", lostUpdate(30), 5, 2, 0},
		{"lost increment", lostIncrement(30), 5, 2, 0},
		{"lost increment in one round", lostIncrement(1), 3, 2, 0},
		{"lost update in one round", lostUpdate(1), 3, 2, 0},
		// One store waits while the other thread runs; the end of a thread drains.
		{"both", both(false), 3, 2, 1},
		// Writer to the flag, intruder, reader, the writer's end.
		{"handover", handover(1), 4, 3, 0},
	} {
		begin, waits := wild(c.p, c.quantum)
		got, err := Minimize(context.Background(), begin, try(c.p, waits), Options{})
		if err != nil || !got.Complete || !got.Reproduced {
			t.Errorf("%s: %+v, %v", c.name, got, err)
			continue
		}
		cost := got.Schedule.Cost()
		if cost.Switches != c.switches || cost.Delays != c.held || begin.Cost().Less(cost) {
			t.Errorf("%s: %+v after %d runs, from %+v: %v", c.name, cost, got.Runs, begin.Cost(), got.Schedule)
		}
		if string(got.Recording) != fmt.Sprint(got.Schedule) {
			t.Errorf("%s: the recording is of another run", c.name)
		}
		checkMinimal(t, c.name, c.p, got.Schedule, waits)
	}
}

// checkMinimal cites invariants 1 and 2.
func checkMinimal(t *testing.T, name string, p program, s Schedule, waits Waits) {
	t.Helper()
	m, real := carryOut(p, s, waits)
	if !p.fails(m) || s.Cost().Less(real.Cost()) {
		t.Errorf("%s: the result does not fail, or not at its cost", name)
	}
	for _, n := range s.Neighbours() {
		if m, real := carryOut(p, n, waits); p.fails(m) && real.Cost().Less(s.Cost()) {
			t.Errorf("%s: %v fails at %+v, less than %+v of %v", name, n, real.Cost(), s.Cost(), s)
		}
	}
}

// detour: thread 1 takes a longer way when it sees that thread 0 has begun; then it
// adds to word 0 without a lock, as thread 0 does after it has been stopped for long.
func detour() program {
	first := append([]op{{"set", 0, 1}, {"store", 1, 0}}, repeat(8, op{"load", 0, 0}, op{"add", 0, 1}, op{"store", 0, 0})...)
	for i := range first[2:] {
		if o := &first[2+i]; o.do == "jump" {
			o.y += 2
		}
	}
	second := []op{
		{"load", 1, 1},
		{"back", 1, 12}, // not begun: the short way
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"add", 2, 1},
		{"load", 0, 0},
		{"add", 0, 1},
		{"store", 0, 0},
		{"exit", 0, 0},
	}
	return program{threads: [][]op{first, second}, fails: func(m *toy) bool { return m.words[0] == 1 }}
}

// TestDriftIsFound: without the first step, thread 1 takes the short way and its
// preemption between load and store is ten instructions earlier in its execution.
func TestDriftIsFound(t *testing.T) {
	p := detour()
	// Thread 0 begins; thread 1 takes the long way and is stopped after its load; thread 0 does
	// all; thread 1 stores 1.
	begin := Schedule{
		{Thread: id(0), Core: 0, To: 2},
		{Thread: id(1), Core: 1, To: 13},
		{Thread: id(0), Core: 0, To: 100, Acts: true},
		{Thread: id(1), Core: 1, To: 100, Acts: true},
	}
	m, begin := carryOut(p, begin, nil)
	if !p.fails(m) || begin.Switches() != 3 || begin[1].To != 13 {
		t.Fatalf("%v", begin)
	}
	off, found, err := find(p, nil)(context.Background(), withoutSteps(begin, 0, 1), 0)
	if err != nil || !found || off != -10 {
		t.Errorf("the place is %d off (%v, %v), want -10", off, found, err)
	}
	if got := NewFollower(begin, nil).Drifted(); got != -1 {
		t.Errorf("before the run step %d has drifted", got)
	}
	for name, o := range map[string]Options{"without": {}, "with": {Probe: find(p, nil)}} {
		got, err := Minimize(context.Background(), begin, try(p, nil), o)
		want := map[string]int{"without": 3, "with": 2}[name]
		if err != nil || got.Schedule.Switches() != want {
			t.Errorf("%s probes: %d switches, want %d: %v, %v", name, got.Schedule.Switches(), want, got.Schedule, err)
		}
	}
}

// TestLoopsAreCut: a thread that waits in a loop for another one does so for few rounds in the
// result.
func TestLoopsAreCut(t *testing.T) {
	p := program{threads: [][]op{
		{{"set", 1, 1}, {"store", 2, 1}, {"load", 0, 0}, {"back", 0, 2}, {"exit", 0, 0}},
		{{"load", 0, 2}, {"back", 0, 5}, {"set", 1, 1}, {"store", 1, 1}, {"store", 0, 1}, {"exit", 0, 0}},
	}, fails: func(m *toy) bool { return m.words[1] == 1 }}
	m, begin := carryOut(p, Schedule{
		{Thread: id(0), Core: 0, To: 9001},
		{Thread: id(1), Core: 1, To: 6, Acts: true},
		{Thread: id(0), Core: 0, To: 9003, Acts: true},
	}, nil)
	if !p.fails(m) || begin[0].To != 9001 {
		t.Fatalf("%v", begin)
	}
	got, err := Minimize(context.Background(), begin, try(p, nil), Options{Probe: find(p, nil)})
	if err != nil || got.Schedule.Switches() != 2 || got.Schedule[0].To > 600 {
		t.Errorf("%v, %v", got.Schedule, err)
	}
}

// TestFenceForbids: a program that cannot fail is not made to.
func TestFenceForbids(t *testing.T) {
	p := both(true)
	begin, waits := wild(both(false), 3)
	got, err := Minimize(context.Background(), begin, try(p, waits), Options{})
	if err != nil || got.Reproduced || got.Recording != nil || !slices.EqualFunc(got.Schedule, begin, func(a, b Step) bool { return a.To == b.To }) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestInterrupted: wherever a search ends, its result has failed.
func TestInterrupted(t *testing.T) {
	p := lostUpdate(20)
	begin, waits := wild(p, 4)
	whole, err := Minimize(context.Background(), begin, try(p, waits), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole.Runs {
		ctx, cancel := context.WithCancel(context.Background())
		o, cut := Options{Runs: n}, ctx
		if n%2 == 1 {
			o = Options{Progress: func(runs int, _ Cost) {
				if runs >= n {
					cancel()
				}
			}}
		} else if n == 0 {
			cancel()
		}
		got, err := Minimize(cut, begin, try(p, waits), o)
		cancel()
		if err != nil || got.Complete || begin.Cost().Less(got.Schedule.Cost()) {
			t.Fatalf("after %d of %d runs: %+v, %v", n, whole.Runs, got, err)
		}
		if m, _ := carryOut(p, got.Schedule, waits); !p.fails(m) {
			t.Fatalf("after %d runs: %v does not fail", n, got.Schedule)
		}
	}
	broken := errors.New("broken")
	_, err = Minimize(context.Background(), begin, func(context.Context, Schedule) (Outcome, error) { return Outcome{}, broken }, Options{})
	if !errors.Is(err, broken) {
		t.Errorf("the error of a try is %v", err)
	}
}

// TestSchedulesRepeat cites invariants 3 and 4, over changed schedules of all toys.
// A run that waits for ever ends by the toy's limit.
func TestSchedulesRepeat(t *testing.T) {
	waiting := program{threads: [][]op{
		{{"wait", 0, 0}, {"load", 0, 1}, {"exit", 0, 0}},
		repeat(3, op{"load", 0, 1}, op{"add", 0, 1}, op{"store", 1, 0}),
		{{"set", 0, 1}, {"store", 0, 0}, {"wake", 0, 0}, {"exit", 0, 0}},
	}, fails: func(*toy) bool { return true }}
	spinning := program{threads: [][]op{ // for ever
		{{"load", 0, 0}, {"pause", 0, 0}, {"back", 0, 0}, {"exit", 0, 0}},
		{{"load", 0, 1}, {"pause", 0, 0}, {"back", 0, 0}, {"exit", 0, 0}},
	}, fails: func(*toy) bool { return true }}
	for name, p := range map[string]program{
		"lost update": lostUpdate(5), "lost increment": lostIncrement(5), "both": both(false), "handover": handover(3), "waiting": waiting, "spinning": spinning,
	} {
		begin, waits := wild(p, 4)
		rapid.Check(t, func(rt *rapid.T) {
			s := begin[:min(len(begin), 200)].deepClone()
			for range rapid.IntRange(0, 6).Draw(rt, "changes") {
				if n := countNeighbours(s); n > 0 {
					s = makeNeighbour(s, rapid.IntRange(0, n-1).Draw(rt, "change"))
				}
			}
			a, first := carryOut(p, s, waits)
			b, again := carryOut(p, s, waits)
			if !bytes.Equal(show(first), show(again)) || a.words != b.words {
				rt.Fatalf("%s: two runs that follow\n%s\ndiffer:\n%s\n%s", name, show(s), show(first), show(again))
			}
			if ended := !slices.ContainsFunc(a.threads, func(t toyThread) bool { return !t.gone }); ended != (name != "spinning") {
				rt.Fatalf("%s: it has ended: %v, after %d steps", name, ended, a.steps)
			}
			if name != "lost update" && name != "both" {
				return
			}
			if _, exact := carryOut(p, first, waits); !bytes.Equal(show(exact), show(first)) {
				rt.Fatalf("%s: it follows\n%s\nas\n%s", name, show(first), show(exact))
			}
		})
	}
}

// show prints a schedule.
func show(s Schedule) []byte {
	var b bytes.Buffer
	for i := range s {
		fmt.Fprintf(&b, "%+v\n", s[i])
	}
	return b.Bytes()
}
