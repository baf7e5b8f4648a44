package predict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// step is an event of a small run: of a thread, r and w access variable n, a and l acquire and release
// lock n, f lets thread n begin, and j waits for its end.
type step struct {
	thread int
	kind   byte
	n      int
}

func (s step) String() string { return fmt.Sprintf("%d%c%d", s.thread, s.kind, s.n) }

// parseRun reads steps such as "0w1".
func parseRun(words ...string) []step {
	var run []step
	for _, w := range words {
		run = append(run, step{int(w[0] - '0'), w[1], int(w[2] - '0')})
	}
	return run
}

// codeOfStep gives each access an instruction: few of them, so that several accesses have the same one.
func codeOfStep(i int, s step) uint64 { return uint64(s.thread*100+s.n*10) + uint64(i%3) }

// build makes a Builder of a run of threads 0 to n-1, and returns the events of the steps.
func build(run []step, n int) (b *Builder, events []EventID) {
	b = NewBuilder(n)
	for i, s := range run {
		var e EventID
		switch s.kind {
		case 'r', 'w':
			e = b.Event(s.thread)
			b.Access(e, &Access{Addr: uint64(s.n * wordBytes), Size: 4, PC: codeOfStep(i, s), Write: s.kind == 'w'})
		case 'a':
			e = b.Acquire(s.thread, uint64(s.n))
		case 'l':
			e = b.Release(s.thread, uint64(s.n))
		case 'f':
			e = b.Event(s.thread)
			b.After(s.n, e)
			b.Event(s.n) // its start
		case 'j':
			b.After(s.thread, b.Last(s.n))
			e = b.Event(s.thread)
		}
		events = append(events, e)
	}
	return b, events
}

// TestSmallRuns has runs as in the introduction of the paper, whose races can be seen by hand.
func TestSmallRuns(t *testing.T) {
	for _, x := range []struct {
		name  string
		run   []string
		races [][2]int
	}{
		{"the critical sections can be left out", []string{"0w0", "0a0", "0w1", "0l0", "1a0", "1r2", "1l0", "1w0"}, [][2]int{{0, 7}}},
		{"the second section reads what the first has written", []string{"0w0", "0a0", "0w1", "0l0", "1a0", "1r1", "1l0", "1w0"}, nil},
		{"both accesses hold the lock", []string{"0a0", "0w0", "0l0", "1a0", "1w0", "1l0"}, nil},
		{"a race within sections of two locks", []string{"0a0", "0w0", "0l0", "1a1", "1w0", "1l1"}, [][2]int{{1, 4}}},
		// The race needs the second section before the first one: predictable, but not
		// synchronization-preserving.
		{"only with the sections in the other order", []string{"0a0", "0w1", "0w0", "0l0", "1a0", "1l0", "1w0"}, nil},
		{"the other order of sections is not preserved", []string{"0a0", "0w0", "0l0", "0w1", "1a0", "1l0", "1w1", "0w2", "1r2"}, [][2]int{{3, 6}, {7, 8}}},
		{"a section of a third variable is needed", []string{"0w0", "0a0", "0w1", "0l0", "1a0", "1l0", "1r1", "1w0"}, nil},
		{"sections of two locks, one within the other", []string{"0a1", "0w0", "0a0", "0l0", "0l1", "1a0", "1l0", "1w0"}, [][2]int{{1, 7}}},
		{"creation orders", []string{"0w0", "0f1", "1w0"}, nil},
		{"end orders", []string{"0f1", "1w0", "0j1", "0w0"}, nil},
	} {
		run := parseRun(x.run...)
		b, events := build(run, 2)
		var got [][2]int
		for i := range run {
			for j := i + 1; j < len(run); j++ {
				if !conflicting(run[i], run[j]) {
					continue
				}
				if _, races := b.Races(events[i], events[j]); races {
					got = append(got, [2]int{i, j})
				}
			}
		}
		if !slices.Equal(got, x.races) {
			t.Errorf("%s: %v has the races %v, want %v", x.name, run, got, x.races)
		}
		if want := bruteForce(run, 2); !slices.Equal(sortedPairs(want), x.races) {
			t.Errorf("%s: by the definition %v has the races %v, want %v", x.name, run, sortedPairs(want), x.races)
		}
	}
}

func conflicting(a, b step) bool {
	access := func(s step) bool { return s.kind == 'r' || s.kind == 'w' }
	return access(a) && access(b) && a.thread != b.thread && a.n == b.n && (a.kind == 'w' || b.kind == 'w')
}

func sortedPairs(set map[[2]int]bool) [][2]int {
	var list [][2]int
	for p := range set {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return list
}

// bruteForce goes through all correct reorderings that preserve the synchronization, by their definition, and
// returns the pairs of accesses that some of them has next.
func bruteForce(run []step, threads int) map[[2]int]bool {
	x := &enumerator{run: run, seen: map[string]bool{}, races: map[[2]int]bool{}, own: make([][]int, threads), from: make([]int, len(run)), start: make([]int, threads)}
	last := map[int]int{}
	for i := range x.start {
		x.start[i] = -1
	}
	for i, s := range run {
		x.own[s.thread] = append(x.own[s.thread], i)
		x.from[i] = -1
		switch s.kind {
		case 'w':
			last[s.n] = i
		case 'r':
			if w, ok := last[s.n]; ok {
				x.from[i] = w
			}
		case 'f':
			x.start[s.n] = i
		}
	}
	x.visit(make([]int, threads), map[int]int{}, map[int]int{}, map[int]int{})
	return x.races
}

type enumerator struct {
	run   []step
	own   [][]int // steps by thread
	from  []int   // the write that a read gets, or -1
	start []int   // the step that lets a thread begin, or -1
	seen  map[string]bool
	races map[[2]int]bool
}

// visit goes through the reorderings that continue one: done are the numbers of steps of threads, memory has the
// last write of each variable, holder the holder of each lock plus 1, and acquired its last acquisition plus 1.
func (x *enumerator) visit(done []int, memory, holder, acquired map[int]int) {
	key := fmt.Sprint(done, memory, holder, acquired)
	if x.seen[key] {
		return
	}
	x.seen[key] = true
	for a := range done {
		for b := a + 1; b < len(done); b++ {
			if done[a] < len(x.own[a]) && done[b] < len(x.own[b]) && x.begun(done, a) && x.begun(done, b) {
				i, j := x.own[a][done[a]], x.own[b][done[b]]
				if conflicting(x.run[i], x.run[j]) {
					x.races[[2]int{min(i, j), max(i, j)}] = true
				}
			}
		}
	}
	for n := range done {
		if done[n] == len(x.own[n]) || !x.begun(done, n) {
			continue
		}
		i := x.own[n][done[n]]
		s := x.run[i]
		m, h, q := copied(memory), copied(holder), copied(acquired)
		switch s.kind {
		case 'r':
			if w, ok := m[s.n]; ok && w != x.from[i] || !ok && x.from[i] >= 0 {
				continue
			}
		case 'w':
			m[s.n] = i
		case 'a':
			if h[s.n] != 0 || q[s.n] > i+1 {
				continue
			}
			h[s.n], q[s.n] = n+1, i+1
		case 'l':
			h[s.n] = 0
		case 'j':
			if done[s.n] < len(x.own[s.n]) {
				continue
			}
		}
		next := slices.Clone(done)
		next[n]++
		x.visit(next, m, h, q)
	}
}

// begun reports whether a thread has begun: the step that lets it begin is done.
func (x *enumerator) begun(done []int, n int) bool {
	if x.start[n] < 0 {
		return true
	}
	by := x.run[x.start[n]].thread
	at := slices.Index(x.own[by], x.start[n])
	return done[by] > at
}

func copied(m map[int]int) map[int]int {
	out := map[int]int{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// randomRun draws a run: threads hold locks as POSIX has it, and the last may be begun and waited for by the first.
func randomRun(r *rand.Rand) (run []step, threads int) {
	threads = 2 + r.IntN(2)
	holder := map[int]int{}
	held := make([][]int, threads)
	forks := r.IntN(2) == 0
	child := threads - 1
	begun, ended := !forks, false
	for n := 6 + r.IntN(10); n > 0; n-- {
		t := r.IntN(threads)
		if t == child && (!begun || ended) {
			t = 0
		}
		switch r.IntN(6) {
		case 0, 1:
			run = append(run, step{t, 'w', r.IntN(3)})
		case 2:
			run = append(run, step{t, 'r', r.IntN(3)})
		case 3:
			if l := r.IntN(2); holder[l] == 0 {
				holder[l] = t + 1
				held[t] = append(held[t], l)
				run = append(run, step{t, 'a', l})
			}
		case 4:
			if k := len(held[t]); k > 0 {
				l := held[t][k-1]
				held[t], holder[l] = held[t][:k-1], 0
				run = append(run, step{t, 'l', l})
			}
		case 5:
			switch {
			case !begun:
				begun = true
				run = append(run, step{0, 'f', child})
			case forks && !ended && t == 0 && len(held[child]) == 0 && r.IntN(3) == 0:
				ended = true
				run = append(run, step{0, 'j', child})
			}
		}
	}
	return run, threads
}

// TestBruteForce checks invariants 1 and 2 on random runs: the races are those of the definition.
func TestBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	total := 0
	for range 4000 {
		run, threads := randomRun(r)
		b, events := build(run, threads)
		want := bruteForce(run, threads)
		codes := map[[2]uint64]bool{}
		for i := range run {
			for j := i + 1; j < len(run); j++ {
				if !conflicting(run[i], run[j]) {
					continue
				}
				_, races := b.Races(events[i], events[j])
				if pair := [2]int{i, j}; races != want[pair] {
					t.Fatalf("%v: steps %v race: %v, by the definition: %v", run, pair, races, want[pair])
				}
				if races {
					x, y := codeOfStep(i, run[i]), codeOfStep(j, run[j])
					codes[[2]uint64{min(x, y), max(x, y)}] = true
					total++
				}
			}
		}
		found := map[[2]uint64]bool{}
		for _, x := range b.Search(Bounds{}).Races {
			if _, races := b.Races(x.First, x.Second); !races {
				t.Fatalf("%v: the search has the pair %d, %d, which does not race", run, x.First, x.Second)
			}
			found[[2]uint64{min(x.Code[0], x.Code[1]), max(x.Code[0], x.Code[1])}] = true
		}
		if fmt.Sprint(found) != fmt.Sprint(codes) {
			t.Fatalf("%v: the search finds the instructions %v, the definition %v", run, found, codes)
		}
	}
	if total < 1000 {
		t.Errorf("%d races in all: the runs show too little", total)
	}
}

// TestBounds checks that a bound is kept, and said.
func TestBounds(t *testing.T) {
	b, _ := build(parseRun("0w0", "0w1", "0w2", "1w0", "1w1", "1w2"), 2)
	if f := b.Search(Bounds{}); len(f.Races) != 3 || f.Pairs != 3 || f.Unfinished != 0 || f.Omitted != 0 {
		t.Errorf("without bounds: %+v", f)
	}
	if f := b.Search(Bounds{Steps: 1}); f.Unfinished == 0 || len(f.Races)+f.Unfinished != f.Pairs {
		t.Errorf("with one step: %+v", f)
	}
}
