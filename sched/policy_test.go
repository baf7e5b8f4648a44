package sched_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// interleaving is the order of threads in a history, without repetitions.
func interleaving(f *Machine) string {
	var b strings.Builder
	for _, h := range f.History {
		b.WriteString(h[strings.Index(h, ":"):])
		b.WriteString(strings.Fields(h)[0])
	}
	return b.String()
}

// Two busy threads interleave in another way with nearly every seed, even if
// both together are shorter than one quantum.
func TestSeedsInterleaveDifferently(t *testing.T) {
	for _, test := range []struct {
		name    string
		options sched.Options
		length  uint64
		want    int // of 100 seeds
	}{
		{"timed", sched.Options{}, 100_000, 100},
		{"timed without lead", sched.Options{Quantum: 1}, 20_000, 100},
		{"random", sched.Options{Policy: sched.Random}, 100_000, 100},
		{"random by instruction", sched.Options{Policy: sched.Random, Granularity: sched.Instruction}, 1000, 100},
		{"pct", sched.Options{Policy: sched.PCT, Length: 200_000}, 100_000, 95},
		{"timed, short", sched.Options{}, 300, 2},
		{"random, short", sched.Options{Policy: sched.Random}, 300, 2},
		{"pct, short", sched.Options{Policy: sched.PCT}, 300, 2},
	} {
		seen := map[string]bool{}
		for seed := range uint64(100) {
			f := NewMachine(NewCluster(t, 2, seed, test.options), Compute(2, test.length)...)
			seen[interleaving(f.Finish(t))] = true
		}
		if len(seen) < test.want {
			t.Errorf("%s: %d interleavings of 100 seeds, want %d", test.name, len(seen), test.want)
		}
	}
}

// On one core it is the time slice, and whom the wake-up lets go first, that
// the seed changes.
func TestSeedsInterleaveDifferentlyOnOneCore(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		f := NewMachine(NewCluster(t, 1, seed, sched.Options{TimeSlice: 10_000}), Compute(2, 100_000)...)
		seen[interleaving(f.Finish(t))] = true
	}
	if len(seen) < 100 {
		t.Errorf("%d interleavings of 100 seeds", len(seen))
	}
}

func TestInjectedDelays(t *testing.T) {
	o := sched.Options{Jitter: Fraction(0), Quantum: 4000}
	span := func(rate float64, cycles uint64) arch.Cycles {
		o.DelayRate, o.DelayCycles = rate, cycles
		return NewMachine(NewCluster(t, 2, 1, o), Compute(2, 100_000)...).Finish(t).Cluster.Makespan()
	}
	// Slices of two steady cores: 4000 cycles for the first, then 8000.
	none, some, all := span(0, 1000), span(0.2, 1000), span(1, 1000)
	if none != 100_000 {
		t.Errorf("makespan %d without delays", none)
	}
	if some <= none || all <= some {
		t.Errorf("makespans %d, %d, %d should grow with the rate of delays", none, some, all)
	}
	if all > 100_000+26*1000 {
		t.Errorf("makespan %d: delays longer than 1000 cycles", all)
	}
	if got := span(1, 1); got < 100_000+12 || got > 100_000+26 {
		t.Errorf("makespan %d with delays of one cycle after every slice", got)
	}
}

// Perfectly parallel work is faster by the number of cores, but for jitter, the
// lead, and the last time slice.
func TestTimedSpeedUp(t *testing.T) {
	const threads, each = 16, 200_000
	for _, cores := range []int{1, 2, 4, 8, 16} {
		for seed := range uint64(5) {
			o := sched.Options{TimeSlice: 5000}.WithDefaults()
			f := NewMachine(NewCluster(t, cores, seed, o), Compute(threads, each)...).Finish(t)
			ideal := float64(threads * each / cores)
			slack := float64(2*o.Quantum + 2*o.TimeSlice)
			if span := float64(f.Cluster.Makespan()); span < ideal || span > ideal*(1+*o.Jitter/2)*1.03+slack {
				t.Errorf("%d cores, seed %d: makespan %.0f, ideal %.0f", cores, seed, span, ideal)
			}
		}
	}
}

// Under timed a thread that computes waits for no longer than a time slice of
// each other thread per core, though those never yield (invariant 5).
func TestTimedFairness(t *testing.T) {
	const cores, threads, slice = 3, 10, 5000
	f := NewMachine(NewCluster(t, cores, 1, sched.Options{TimeSlice: slice, Quantum: 500}), Compute(threads, 300_000)...)
	f.Finish(t)
	if bound := uint64(threads * 1.1 * slice); f.LongestWait > bound {
		t.Errorf("a thread waited for %d instructions, bound %d", f.LongestWait, bound)
	}
}

func TestRandomIsUniform(t *testing.T) {
	const quanta = 40_000
	c := NewCluster(t, 2, 3, sched.Options{Policy: sched.Random, Quantum: 50})
	for id := range arch.ThreadID(4) {
		c.Ready(id+1, 0)
	}
	var follows [5][5]int
	var last arch.ThreadID
	var total uint64
	for range quanta {
		s, _ := c.Next(0, false)
		follows[last][s.Thread]++
		last = s.Thread
		total += s.Instructions
		c.Ran(s, s.Instructions, arch.Cycles(s.Instructions))
	}
	for i := 1; i <= 4; i++ {
		for j := 1; j <= 4; j++ {
			if share := float64(follows[i][j]) / quanta * 16; math.Abs(share-1) > 0.1 {
				t.Errorf("thread %d follows %d %.2f times as often as it should", j, i, share)
			}
		}
	}
	if mean := float64(total) / quanta; math.Abs(mean-50) > 1 {
		t.Errorf("mean slice %.1f, want 50", mean)
	}
}

// A thread that yields does not get the next slice, unless it is alone.
func TestRandomYield(t *testing.T) {
	c := NewCluster(t, 1, 3, sched.Options{Policy: sched.Random})
	count := map[arch.ThreadID]int{}
	for id := range arch.ThreadID(3) {
		c.Ready(id+1, 0)
		for range 300 {
			c.Yield(1)
			s, _ := c.Next(0, false)
			if s.Thread == 1 && id > 0 {
				t.Fatal("thread 1 follows its own yield")
			}
			if id == 2 {
				count[s.Thread]++
			}
			c.Ran(s, 1, 1)
		}
	}
	if count[2] < 100 || count[3] < 100 {
		t.Errorf("threads 2 and 3 ran %d and %d times of 300", count[2], count[3])
	}
}

// A yield counts for one draw, and not at all once its thread is blocked.
func TestRandomYieldIsShort(t *testing.T) {
	count := map[arch.ThreadID]int{}
	for seed := range uint64(300) {
		c := NewCluster(t, 1, seed, sched.Options{Policy: sched.Random})
		for id := range arch.ThreadID(3) {
			c.Ready(id+1, 0)
		}
		c.Yield(1)
		c.Next(0, false)
		s, _ := c.Next(0, false)
		count[s.Thread]++
		c.Yield(1)
		c.Block(1)
		s, _ = c.Next(0, false)
		count[s.Thread+10]++
	}
	for _, test := range []struct {
		id   arch.ThreadID
		want int
	}{{1, 100}, {2, 100}, {3, 100}, {11, 0}, {12, 150}, {13, 150}} {
		if got := count[test.id]; got < test.want*3/4 || got > test.want*5/4 {
			t.Errorf("%d: %d times of 300, want about %d", test.id, got, test.want)
		}
	}
}

// A woken thread starts at a seeded time within a quantum.
func TestTimedWakeUpJitter(t *testing.T) {
	seen := map[arch.Cycles]bool{}
	for seed := range uint64(200) {
		c := NewCluster(t, 1, seed, sched.Options{Quantum: 50})
		c.Ready(1, 1000)
		c.Next(0, false)
		if now := c.Now(0); now < 1000 || now >= 1050 {
			t.Errorf("started at %d, want 1000 to 1049", now)
		}
		seen[c.Now(0)] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d different starts within 50 cycles", len(seen))
	}
}

// The budget of a slice ends where a waiting thread starves.
func TestSliceEndsWhereAnotherStarves(t *testing.T) {
	for _, policy := range []string{sched.Random, sched.PCT} {
		for seed := range uint64(50) {
			c := NewCluster(t, 1, seed, sched.Options{
				Policy: policy, Granularity: sched.Sync, Depth: 1, Fairness: 1000,
			})
			c.Ready(1, 0)
			s, _ := c.Next(0, false)
			c.Ran(s, 600, 600)
			c.Ready(2, 0)
			s, _ = c.Next(0, false)
			if s.Instructions != 1000 && s.Thread == 1 {
				t.Fatalf("%s: %+v, thread 2 starves after 1000", policy, s)
			}
			c.Ran(s, 400, 400)
			again, _ := c.Next(0, false)
			if again.Thread == s.Thread && s.Thread == 1 && again.Instructions != 600 {
				t.Fatalf("%s: %+v, thread 2 starves after 600 more", policy, again)
			}
		}
	}
}

// Under pct a thread that yields falls below all others, those included that
// have yielded before it.
func TestPCTYield(t *testing.T) {
	for seed := range uint64(20) {
		c := NewCluster(t, 1, seed, sched.Options{Policy: sched.PCT, Depth: 4, Length: 4})
		for id := range arch.ThreadID(4) {
			c.Ready(id+1, 0)
		}
		for c.Instructions() < 4 { // past all change points
			s, _ := c.Next(0, false)
			c.Ran(s, 1, 1)
		}
		var order []arch.ThreadID
		for range 12 {
			s, _ := c.Next(0, false)
			order = append(order, s.Thread)
			c.Yield(s.Thread)
		}
		if !slices.Equal(order[:4], order[4:8]) || !slices.Equal(order[:4], order[8:]) {
			t.Errorf("seed %d: order %v, want the same four again and again", seed, order)
		}
	}
}

// Without change points pct runs one thread after the other, in every order.
func TestPCTDepthOne(t *testing.T) {
	orders := map[string]int{}
	for seed := range uint64(600) {
		f := NewMachine(NewCluster(t, 2, seed, sched.Options{Policy: sched.PCT, Depth: 1}), Compute(3, 1000)...)
		f.Finish(t)
		var order []string
		for _, h := range f.History {
			order = append(order, h[:1])
		}
		orders[strings.Join(slices.Compact(order), "")]++
	}
	if len(orders) != 6 {
		t.Errorf("orders %v, want the six permutations", orders)
	}
	for order, n := range orders {
		if n < 60 || n > 140 {
			t.Errorf("order %s in %d of 600 runs, want about 100", order, n)
		}
	}
}

// A thread keeps its priority while it sleeps.
func TestPCTKeepsPriorities(t *testing.T) {
	for seed := range uint64(20) {
		c := NewCluster(t, 1, seed, sched.Options{Policy: sched.PCT, Depth: 1})
		c.Ready(1, 0)
		c.Ready(2, 0)
		first, _ := c.Next(0, false)
		for range 20 {
			c.Block(first.Thread)
			c.Ready(first.Thread, 0)
			if s, _ := c.Next(0, false); s.Thread != first.Thread {
				t.Fatalf("seed %d: thread %d overtakes %d", seed, s.Thread, first.Thread)
			}
		}
	}
}

// The bound that the paper proves: a bug of depth d shows with probability at
// least 1/(n k^(d-1)). Here thread 2 must come between the 5th and the 6th
// instruction of thread 1, which is depth 2; n is 2 and k is 20.
func TestPCTGuarantee(t *testing.T) {
	const runs, k = 8000, 20
	o := sched.Options{Policy: sched.PCT, Depth: 2, Length: k}
	hits := 0
	for seed := range uint64(runs) {
		f := NewMachine(NewCluster(t, 1, seed, o), Compute(2, k/2)...).Finish(t)
		if slices.Equal(f.History, []string{"1 on 0: 5", "2 on 0: 10", "1 on 0: 5"}) {
			hits++
		}
	}
	if want := runs / (2 * k); hits < want*8/10 {
		t.Errorf("%d hits in %d runs, the bound is %d", hits, runs, want)
	}
}

// A change point puts its thread below the never demoted ones: one change
// point adds one slice at most.
func TestPCTChangePointsDemote(t *testing.T) {
	for seed := range uint64(50) {
		f := NewMachine(NewCluster(t, 2, seed, sched.Options{Policy: sched.PCT, Depth: 3, Length: 6000}), Compute(4, 1500)...)
		f.Finish(t)
		if n := len(f.History); n > 4+2 {
			t.Errorf("seed %d: %d quanta of 4 threads and 2 change points: %v", seed, n, f.History)
		}
	}
}

// Threads that spin on the lowest thread's flag, with PAUSE or without, end
// under every policy on one core.
func TestSpinnersDoNotLivelock(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		for _, how := range []func(uint64) Op{Spin, Pause} {
			for _, granularity := range sched.Granularities() {
				for seed := range uint64(5) {
					o := sched.Options{
						Policy: policy, Granularity: granularity,
						Quantum: 1000, Fairness: 10_000, TimeSlice: 10_000,
					}
					spinner := []Op{how(0), Run(50)}
					NewMachine(NewCluster(t, 1, seed, o), spinner, spinner, spinner,
						[]Op{Run(20_000), Set(0)}).Finish(t)
				}
			}
		}
	}
}

// Two threads that wake each other for ever do not starve a third one: neither
// runs for long at a time.
func TestPingPongDoesNotStarve(t *testing.T) {
	for _, policy := range untimedPolicies {
		for seed := range uint64(20) {
			c := NewCluster(t, 1, seed, sched.Options{Policy: policy, Fairness: 10_000})
			var ran [4]uint64
			for id := range arch.ThreadID(3) {
				c.Ready(id+1, 0)
			}
			c.Block(2)
			for range 2000 {
				s, _ := c.Next(0, false)
				n := min(100, s.Instructions)
				c.Ran(s, n, arch.Cycles(n))
				ran[s.Thread] += n
				if s.Thread != 3 {
					c.Ready(3-s.Thread, c.Now(s.Core))
					c.Block(s.Thread)
				}
			}
			if bound := c.Instructions() / 20_000; ran[3] < bound*100 {
				t.Errorf("%s, seed %d: the third thread ran %d of %d instructions", policy, seed, ran[3], c.Instructions())
			}
		}
	}
}

// Threads can be started by threads, and take part from the start.
func TestSpawnedThreads(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		scripts := [][]Op{nil}
		for i := range uint64(40) {
			scripts[0] = append(scripts[0], Run(100), Spawn(i+1))
			scripts = append(scripts, []Op{Run(3000), Sleep(2000), Set(i)})
		}
		for i := range uint64(40) {
			scripts[0] = append(scripts[0], Await(i))
		}
		f := NewMachine(NewCluster(t, 4, 1, sched.Options{Policy: policy, TimeSlice: 5000}), scripts...).Finish(t)
		if f.Cluster.Makespan() < 4000+3000+2000 {
			t.Errorf("%s: makespan %d is below the critical path", policy, f.Cluster.Makespan())
		}
	}
}

// A PAUSE ends a slice where another thread could go first, and nowhere else.
func TestPauseEndsSlices(t *testing.T) {
	for _, policy := range []string{sched.Timed, sched.RR, sched.Random, sched.PCT, sched.CoreDet, sched.RRSync} {
		c := NewCluster(t, 2, 1, sched.Options{Policy: policy})
		timed := policy == sched.Timed || policy == sched.RRSync
		next := func() bool {
			s, v := c.Next(0, false)
			if v != sched.Run {
				t.Fatalf("%s: verdict %v", policy, v)
			}
			c.Ran(s, 1000, 1000)
			c.Yield(s.Thread)
			return s.StopAtPause
		}
		for id := range arch.ThreadID(3) {
			c.Ready(id+1, 0)
			for range 20 {
				// Two threads have a core each where cores run at the same time.
				if got, want := next(), id == 2 || id == 1 && !timed; got != want {
					t.Fatalf("%s, %d threads: StopAtPause is %v", policy, id+1, got)
				}
			}
		}
		c.Block(2)
		c.Block(3)
		for range 6 { // coredet ends its round first
			next()
		}
		if next() {
			t.Errorf("%s: StopAtPause with a thread alone", policy)
		}
	}
}

// A thread has its turn for some instructions before PAUSE ends it.
func TestPauseEndsNoTurnAtOnce(t *testing.T) {
	for _, test := range []struct {
		options sched.Options
		want    uint64
	}{
		{sched.Options{Policy: sched.Random}, 4000},
		{sched.Options{Policy: sched.PCT}, 4000},
		{sched.Options{Policy: sched.RR}, 4000},
		{sched.Options{Policy: sched.RR, Granularity: sched.Sync}, 0},
		{sched.Options{Policy: sched.Random, Granularity: sched.Sync}, 0},
		{sched.Options{Policy: sched.CoreDet}, 16000},
	} {
		c := NewCluster(t, 1, 1, test.options)
		c.Ready(1, 0)
		c.Ready(2, 0)
		if s, _ := c.Next(0, false); !s.StopAtPause || s.PauseAfter != test.want {
			t.Errorf("%v: %v after %d", test.options.Policy, s.StopAtPause, s.PauseAfter)
		}
	}
	// Under timed the turn has several quanta.
	c := NewCluster(t, 1, 1, sched.Options{Jitter: new(float64)})
	c.Ready(1, 0)
	c.Ready(2, 0)
	for _, want := range []uint64{4000, 3000, 2000, 1000, 0, 0} {
		s, _ := c.Next(0, false)
		if s.Thread != 1 || !s.StopAtPause || s.PauseAfter != want {
			t.Fatalf("thread %d, StopAtPause is %v, after %d, want %d", s.Thread, s.StopAtPause, s.PauseAfter, want)
		}
		c.Ran(s, 900, 1000)
	}
	c.Yield(1)
	if s, _ := c.Next(0, false); s.Thread != 2 || s.PauseAfter != 4000 {
		t.Errorf("thread %d, after %d", s.Thread, s.PauseAfter)
	}
}

// A thread that becomes runnable on a core that is ahead cannot go first yet.
func TestPauseBeforeOneThatIsNotReady(t *testing.T) {
	c := NewCluster(t, 1, 1, sched.Options{Jitter: new(float64)})
	c.Ready(1, 0)
	c.Next(0, false)
	c.Ready(2, 30_000)
	if s, _ := c.Next(0, false); s.Thread != 1 || !s.StopAtPause || s.PauseAfter != 30_000 {
		t.Errorf("thread %d, StopAtPause is %v, after %d", s.Thread, s.StopAtPause, s.PauseAfter)
	}
}

// If a thread waits only for another core, no thread yields to it.
func TestPauseWithAffinity(t *testing.T) {
	c := NewCluster(t, 2, 1, sched.Options{})
	for id := range arch.ThreadID(3) {
		c.SetAffinity(id+1, uint64(min(id+1, 2)))
		c.Ready(id+1, 0)
	}
	for range 40 {
		s, _ := c.Next(0, false)
		if s.StopAtPause != (s.Core == 1) {
			t.Fatalf("StopAtPause is %v on core %d", s.StopAtPause, s.Core)
		}
		c.Ran(s, 1000, 1000)
	}
}

// The threads of an order of priorities let one another go first.
func TestPauseAmongPriorities(t *testing.T) {
	c, err := sched.NewWithPolicy(2, sched.NewPriority([]arch.ThreadID{2, 1}, 0))
	if err != nil {
		t.Fatal(err)
	}
	for id := range arch.ThreadID(2) {
		c.Ready(id+1, 0)
		if s, _ := c.Next(0, false); s.StopAtPause != (id == 1) {
			t.Errorf("%d threads: StopAtPause is %v", id+1, s.StopAtPause)
		}
	}
}
