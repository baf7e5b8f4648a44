package peregrine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Signals from other threads and from timers, and cancellation wherever a thread is, happen at the
// recorded places: the output, which depends on them, is the same in all runs, and differs without
// a schedule.
func TestSignalsHavePlaces(t *testing.T) {
	bin := gcctest.File(t, "testdata/signals.c", "-g")
	for _, args := range [][]string{{bin}, {bin, "timers"}} {
		free := map[string]bool{}
		for seed := uint64(1); seed <= 2; seed++ {
			c := config(args...)
			c.Seed, c.Sched = seed, sched.Options{DelayRate: 0.3, DelayCycles: 20_000}
			m := made(t, c, peregrine.Options{})
			places := map[int64]int{}
			for _, o := range m.Schedule.Operations {
				if o.Part == event.SignalPart {
					places[min(o.Result, 0)]++
				}
			}
			if places[0] == 0 || places[event.Interrupted] == 0 {
				t.Errorf("%d signals at instructions, %d in calls and waits", places[0], places[event.Interrupted])
			}
			outputs := map[string]int{}
			for _, v := range varied(c, testsize.Runs(2, 4, 6)) {
				r, out := enforced(t, v, m, enforce.Options{})
				if !r.Schedule.Followed {
					t.Errorf("seed %d on %d cores leaves the schedule: %s", v.Seed, v.Cores, r.Schedule.Reason)
				}
				outputs[out+r.StateDigest]++
				free[out] = true
			}
			if len(outputs) != 1 {
				t.Errorf("seed %d: %v", seed, outputs)
			}
		}
		if len(free) < 2 {
			t.Errorf("recorded runs do not differ: %s", strings.Join(args[1:], " "))
		}
	}
}

// A signal may come where a thread has called an operation's function and has executed
// nothing of it: it comes there, before the operation, in runs under the schedule too.
func TestSignalsAtCalls(t *testing.T) {
	bin := gcctest.File(t, "testdata/entries.c", "-static", "-no-pie")
	symbols := gcctest.Symbols(t, bin)
	c := config(bin)
	c.Sched = sched.Options{Quantum: 40}
	m := made(t, c, peregrine.Options{})
	called := 0
	for _, o := range m.Schedule.Operations {
		if o.Part == event.SignalPart && o.Result >= 0 {
			switch uint64(o.Writes[0].Addr) {
			case symbols["pthread_mutex_lock"].Value, symbols["pthread_mutex_unlock"].Value:
				called++
			}
		}
	}
	if found := states(t, c, m, testsize.Runs(2, 6, 10), enforce.Options{}); len(found) != 1 || called == 0 {
		t.Errorf("%d signals at calls; states: %v", called, found)
	}
	t.Logf("%d signals at calls", called)
}

// A call that a signal ends in the recorded run is ended by it in runs under the schedule, and the thread
// continues.
func TestInterruptedCallsAreFollowed(t *testing.T) {
	bin := gcctest.File(t, "testdata/interrupted.c")
	for _, call := range []string{"sigsuspend", "read", "usleep"} {
		c := config(bin, call)
		m := made(t, c, peregrine.Options{})
		for _, v := range varied(c, testsize.Runs(1, 2, 6)) {
			if r, out := enforced(t, v, m, enforce.Options{}); !r.Schedule.Followed || out != "signal 12\n" {
				t.Errorf("%s: followed %v (%s), output %q", call, r.Schedule.Followed, r.Schedule.Reason, out)
			}
		}
	}
}

// The time stamp counter has the same values in runs under a schedule, and in the recorded run as long as
// that does not wait in an operation: Go's run-time, for one, decides by it.
func TestTimeStampsAreFollowed(t *testing.T) {
	bin := gcctest.File(t, "testdata/stamps.c")
	c := config(bin)
	m := made(t, c, peregrine.Options{})
	recorded := c
	recorded.Control = peregrine.ControlConfig()
	var want bytes.Buffer
	recorded.Stdout = &want
	if _, err := machine.Run(context.Background(), recorded); err != nil {
		t.Fatal(err)
	}
	for _, v := range varied(c, testsize.Runs(1, 2, 6)) {
		if r, out := enforced(t, v, m, enforce.Options{}); !r.Schedule.Followed || out != want.String() {
			t.Errorf("followed %v (%s), output %q, not %q", r.Schedule.Followed, r.Schedule.Reason, out, &want)
		}
	}
}
