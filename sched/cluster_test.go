package sched_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// steady makes a timed cluster that the seed has no effect on, so that its
// decisions can be worked out by hand.
func steady(t *testing.T, cores int, quantum, timeSlice uint64) *sched.Cluster {
	t.Helper()
	return NewCluster(t, cores, 1, sched.Options{Jitter: Fraction(0), Quantum: quantum, TimeSlice: timeSlice})
}

// next demands that a thread runs next on a core with a budget in cycles.
func next(t *testing.T, c *sched.Cluster, thread arch.ThreadID, core arch.CoreID, cycles arch.Cycles) sched.Quantum {
	t.Helper()
	s, verdict := c.Next(0, false)
	want := sched.Quantum{Thread: thread, Core: core, Cycles: cycles, InsideChoice: s.InsideChoice, StopAtPause: s.StopAtPause, PauseAfter: s.PauseAfter}
	if verdict != sched.Run || s != want {
		t.Fatalf("%v %+v, want %+v", verdict, s, want)
	}
	return s
}

func TestTimedStepsSmallestClock(t *testing.T) {
	c := steady(t, 3, 100, 10_000)
	for id := range arch.ThreadID(3) {
		c.Ready(id+1, 0)
	}
	// Each runs until it is 100 ahead of the second smallest clock.
	c.Ran(next(t, c, 1, 0, 100), 100, 100)
	c.Ran(next(t, c, 2, 1, 100), 100, 150) // overruns
	c.Ran(next(t, c, 3, 2, 200), 30, 30)   // stops early, is still the slowest
	c.Charge(2, 20)                        // the kernel
	c.Ran(next(t, c, 3, 2, 150), 150, 150) // to 200
	c.Ran(next(t, c, 1, 0, 150), 150, 150) // to 250
	next(t, c, 2, 1, 150)
	if c.Makespan() != 250 || c.Now(1) != 150 || c.Instructions() != 530 || c.Switches() != 0 {
		t.Errorf("makespan %d, core 1 at %d, %d instructions, %d switches",
			c.Makespan(), c.Now(1), c.Instructions(), c.Switches())
	}
}

func TestTimedTimers(t *testing.T) {
	c := steady(t, 2, 100, 10_000)
	if _, v := c.Next(0, false); v != sched.Idle {
		t.Errorf("nothing to do: %v", v)
	}
	if _, v := c.Next(70, true); v != sched.FireTimer {
		t.Errorf("nothing but a timer: %v", v)
	}
	c.PassTo(70)
	c.Ready(1, 70)
	c.Ready(2, 90)
	s, v := c.Next(80, true)
	if v != sched.Run || s.Thread != 1 || s.Cycles != 10 {
		t.Fatalf("%v %+v, want thread 1 up to the timer", v, s)
	}
	c.Ran(s, 10, 10)
	if _, v := c.Next(80, true); v != sched.FireTimer {
		t.Errorf("timer is due: %v", v)
	}
	if c.Now(0) != 80 || c.Now(1) != 90 {
		t.Errorf("clocks %d and %d, want 80 and 90", c.Now(0), c.Now(1))
	}
}

func TestTimeSlice(t *testing.T) {
	c := steady(t, 1, 100, 1000)
	c.SetSwitchCost(7)
	c.Ready(1, 0)
	c.Ready(2, 400)
	// Thread 2 is not there yet when thread 1's time slice ends.
	c.Ran(next(t, c, 1, 0, 1000), 300, 300)
	c.Ran(next(t, c, 1, 0, 700), 700, 700)
	c.Ran(next(t, c, 2, 0, 1000), 400, 400)
	if c.Now(0) != 1407 || c.Switches() != 1 {
		t.Errorf("clock %d, want 1407; %d switches", c.Now(0), c.Switches())
	}
	c.Yield(2)
	c.Ran(next(t, c, 1, 0, 1000), 400, 400)
	c.Block(1)
	c.Yield(2) // waits and is not affected
	next(t, c, 2, 0, 1000)
	if c.Now(0) != 1821 || c.Switches() != 3 {
		t.Errorf("clock %d, want 1821; %d switches", c.Now(0), c.Switches())
	}
}

// A core's time slice is renewed when it ends before a queued thread is there.
func TestTimeSliceIsRenewed(t *testing.T) {
	c := steady(t, 1, 100, 1000)
	c.Ready(1, 0)
	c.Ready(2, 1500)
	c.Ran(next(t, c, 1, 0, 1000), 1000, 1000)
	c.Ran(next(t, c, 1, 0, 1000), 1000, 1000)
	next(t, c, 2, 0, 1000)
}

// An idle core takes the first thread in the queue that is there, and if none
// is, the first to come.
func TestIdleCoreTakesWhoComesFirst(t *testing.T) {
	c := steady(t, 1, 100, 1000)
	c.Ready(1, 500)
	c.Ready(2, 300)
	c.Ready(3, 300)
	next(t, c, 2, 0, 1000)
	if c.Now(0) != 300 {
		t.Errorf("clock %d, want 300", c.Now(0))
	}
	c.Charge(0, 200)
	c.Block(2)
	next(t, c, 1, 0, 1000)
}

// A woken thread takes its last core if that is idle, unless the core's clock
// is far ahead, and does not start before it was woken.
func TestWakeUpAffinity(t *testing.T) {
	c := steady(t, 3, 100, 10_000)
	for id := range arch.ThreadID(3) {
		c.Ready(id+1, 0)
	}
	next(t, c, 1, 0, 100)
	c.Block(2)
	c.Block(3)
	c.Ready(3, 50)
	next(t, c, 1, 0, 150)
	if c.CoreOf(3) != 2 || c.Now(2) != 50 {
		t.Errorf("thread 3 is on core %d at %d, want its last, 2, at 50", c.CoreOf(3), c.Now(2))
	}
	c.Charge(1, 5000)
	c.Block(3)
	c.Ready(2, 60)
	next(t, c, 1, 0, 160)
	if c.CoreOf(2) != 2 || c.Now(2) != 60 {
		t.Errorf("thread 2 is on core %d at %d, want 2 at 60", c.CoreOf(2), c.Now(2))
	}
	if c.LastCoreOf(3) != 2 || c.CoreOf(3) != arch.NoCore {
		t.Errorf("blocked thread 3 is on core %d", c.CoreOf(3))
	}
}

func TestQueueIsFirstInFirstOut(t *testing.T) {
	c := steady(t, 1, 100, 1000)
	for id := range arch.ThreadID(4) {
		c.Ready(id+1, 0)
	}
	var order []arch.ThreadID
	for range 9 {
		s, _ := c.Next(0, false)
		order = append(order, s.Thread)
		c.Ran(s, 1000, 1000)
	}
	if want := []arch.ThreadID{1, 2, 3, 4, 1, 2, 3, 4, 1}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestAffinity(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		c := NewCluster(t, 2, 1, sched.Options{Policy: policy})
		if c.Affinity(1) != 3 || c.SetAffinity(1, 4) || !c.SetAffinity(1, 6) || c.Affinity(1) != 2 {
			t.Errorf("%s: affinity %#x, want 2", policy, c.Affinity(1))
		}
		c.Ready(1, 0)
		c.Ready(2, 0)
		for range 20 {
			s, _ := c.Next(0, false)
			if s.Thread == 1 && s.Core != 1 {
				t.Fatalf("%s: thread 1 on core %d", policy, s.Core)
			}
			c.Ran(s, 5000, 5000)
		}
		was := c.Now(1)
		c.SetAffinity(1, 1) // and off core 1
		if c.CoreOf(1) != arch.NoCore {
			t.Errorf("%s: thread 1 stays on core %d", policy, c.CoreOf(1))
		}
		for ran := false; !ran; {
			s, _ := c.Next(0, false)
			if ran = s.Thread == 1; ran && (s.Core != 0 || c.Now(0) < was) {
				t.Errorf("%s: thread 1 at %d on core %d, before %d", policy, c.Now(0), s.Core, was)
			}
			c.Ran(s, 5000, 5000)
		}
	}
}

// A thread that is pinned gets its core though others are ahead in the queue
// who could use any.
func TestPinnedThreadsShareTheirCore(t *testing.T) {
	c := steady(t, 2, 100, 1000)
	for id := range arch.ThreadID(3) {
		c.SetAffinity(id+1, 1)
		c.Ready(id+1, 0)
	}
	c.Ready(4, 0)
	ran := map[arch.ThreadID]uint64{}
	for range 400 {
		s, _ := c.Next(0, false)
		if (s.Core == 1) != (s.Thread == 4) {
			t.Fatalf("thread %d on core %d", s.Thread, s.Core)
		}
		c.Ran(s, uint64(s.Cycles), s.Cycles)
		ran[s.Thread] += uint64(s.Cycles)
	}
	if low, high := min(ran[1], ran[2], ran[3]), max(ran[1], ran[2], ran[3]); high-low > 1000 {
		t.Errorf("pinned threads ran %d to %d", low, high)
	}
}

func TestRoundRobinOverThreads(t *testing.T) {
	for _, test := range []struct {
		granularity string
		slice       sched.Quantum
	}{
		{sched.Block, sched.Quantum{Instructions: 100}},
		{sched.Instruction, sched.Quantum{Instructions: 100, Exact: true}},
		{sched.Sync, sched.Quantum{Instructions: 300, StopAtSync: true}},
	} {
		c := NewCluster(t, 2, 1, sched.Options{Policy: sched.RR, Quantum: 100, Granularity: test.granularity, Fairness: 900})
		for id := range arch.ThreadID(3) {
			c.Ready(id+1, 0)
		}
		for i := range 30 {
			s, _ := c.Next(0, false)
			want := test.slice
			want.Thread, want.Core, want.InsideChoice, want.StopAtPause, want.PauseAfter = arch.ThreadID(i%3+1), s.Core, s.InsideChoice, true, s.PauseAfter
			// Turns by instructions are up to a sixteenth shorter.
			if want.Instructions == 100 && s.Instructions >= 93 && s.Instructions <= 100 {
				want.Instructions = s.Instructions
			}
			if s != want {
				t.Fatalf("%s: slice %d is %+v, want %+v", test.granularity, i, s, want)
			}
			c.Ran(s, s.Instructions, arch.Cycles(s.Instructions))
		}
		// Two cores share the work.
		if work := arch.Cycles(c.Instructions()); c.Makespan() > work/2+arch.Cycles(test.slice.Instructions) {
			t.Errorf("%s: makespan %d of %d cycles on two cores", test.granularity, c.Makespan(), work)
		}
	}
}

// A timer wakes sleepers of the untimed policies though one core lags, and no
// slice runs past it.
func TestUntimedTimers(t *testing.T) {
	for _, policy := range untimedPolicies {
		c := NewCluster(t, 2, 1, sched.Options{Policy: policy, TimeSlice: 300})
		c.SetAffinity(1, 1)
		c.SetAffinity(2, 2)
		c.Ready(1, 0)
		s, v := c.Next(1000, true)
		if v != sched.Run || s.Cycles != 1000 {
			t.Fatalf("%s: %v %+v, want a budget of 1000 cycles", policy, v, s)
		}
		c.Ran(s, 1000, 1000)
		if _, v := c.Next(1000, true); v != sched.FireTimer {
			t.Errorf("%s: %v, want the timer", policy, v)
		}
		c.Block(1)
		c.Ready(2, 0)
		// Core 1 was at 0; the furthest is at 1000.
		if s, _ := c.Next(1100, true); c.Now(1) != 700 || s.Cycles != 400 {
			t.Errorf("%s: core 1 starts at %d for %d, want 700 and 400", policy, c.Now(1), s.Cycles)
		}
	}
}

func TestExitedThreadsAreForgotten(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		c := NewCluster(t, 2, 1, sched.Options{Policy: policy})
		c.SetAffinity(1, 1)
		c.Ready(1, 0)
		c.Next(0, false)
		c.Exit(1)
		if c.Affinity(1) != 3 || c.CoreOf(1) != arch.NoCore || c.LastCoreOf(1) != arch.NoCore || c.Runnable() != 0 {
			t.Errorf("%s: thread 1 has left traces", policy)
		}
		c.Ready(2, 0)
		c.Ready(2, 0)
		if got, waited := c.LongestWaiting(); c.Runnable() != 1 || got != 2 || waited != 0 || c.RunnableThread(0) != 2 {
			t.Errorf("%s: %d runnable threads", policy, c.Runnable())
		}
		c.Block(2)
		c.Block(2)
		c.Yield(2)
		if _, v := c.Next(0, false); v != sched.Idle {
			t.Errorf("%s: %v", policy, v)
		}
	}
}

// A thread can be stopped while it waits for a core.
func TestBlockOfWaitingThread(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		c := NewCluster(t, 1, 1, sched.Options{Policy: policy})
		for id := range arch.ThreadID(3) {
			c.Ready(id+1, 0)
		}
		s, _ := c.Next(0, false)
		c.Ran(s, 100, 100)
		waiting := s.Thread%3 + 1
		c.Block(waiting)
		c.Exit(waiting%3 + 1)
		if waiting%3+1 == s.Thread {
			t.Fatal("bad test")
		}
		for range 10 {
			if got, _ := c.Next(0, false); got.Thread != s.Thread {
				t.Fatalf("%s: thread %d runs, only %d is runnable", policy, got.Thread, s.Thread)
			}
			c.Ran(s, 5_000_000, 5_000_000)
		}
		c.Ready(waiting, 0)
		if got, waited := c.LongestWaiting(); got != s.Thread && waited != 0 {
			t.Errorf("%s: thread %d has waited for %d instructions", policy, got, waited)
		}
	}
}

// Virtual time cannot stand still while instructions run.
func TestFreeInstructionsTakeTime(t *testing.T) {
	c := steady(t, 1, 100, 1000)
	c.Ready(1, 0)
	s, _ := c.Next(0, false)
	c.Ran(s, 10, 0)
	c.Ran(s, 0, 0)
	if c.Now(0) != 1 {
		t.Errorf("clock %d, want 1", c.Now(0))
	}
}

// Policies that choose threads keep them on their cores, too.
func TestUntimedWakeUpAffinity(t *testing.T) {
	c := NewCluster(t, 3, 1, sched.Options{Policy: sched.RR})
	for id := range arch.ThreadID(2) {
		c.Ready(id+1, 0)
		s, _ := c.Next(0, false)
		c.Ran(s, 100, 100)
	}
	s, _ := c.Next(0, false)
	c.Ran(s, 500, 500)
	c.Block(s.Thread)
	c.Next(0, false)
	c.Ready(s.Thread, 0)
	if core := c.Place(s.Thread); core != s.Core || core == 2 {
		t.Errorf("thread %d goes from core %d to %d, which has the smallest clock", s.Thread, s.Core, core)
	}
}

func TestUnknownThreadIsABug(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "bug: ") {
			t.Errorf("panic %q", text)
		}
	}()
	NewCluster(t, 1, 1, sched.Options{}).Block(5)
}

func TestPlaceOnRefuses(t *testing.T) {
	c := NewCluster(t, 2, 1, sched.Options{Policy: sched.RR})
	c.SetAffinity(1, 1)
	if c.PlaceOn(1, 0) {
		t.Error("thread 1 is not runnable")
	}
	c.Ready(1, 0)
	if c.PlaceOn(1, 1) || !c.PlaceOn(1, 0) || !c.PlaceOn(1, 0) || c.Place(1) != 0 {
		t.Error("thread 1 may use core 0 alone")
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, want := range map[sched.Verdict]string{sched.Run: "run", sched.FireTimer: "fire timer", sched.Idle: "idle"} {
		if v.String() != want {
			t.Errorf("%d is %q, want %q", v, v, want)
		}
	}
}
