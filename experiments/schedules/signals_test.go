package schedules_test

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Signals from other threads and from timers, and cancellation wherever a thread is,
// come at the recorded places: what runs print, which depends on them, is one text,
// and several without a schedule.
func TestSignalsHavePlaces(t *testing.T) {
	bin := gcctest.File(t, "testdata/signals.c", "-g")
	for _, args := range [][]string{{bin}, {bin, "timers"}} {
		free := map[string]bool{}
		for seed := uint64(1); seed <= 2; seed++ {
			c := config(args...)
			c.Seed, c.Sched = seed, sched.Options{DelayRate: 0.3, DelayCycles: 20_000}
			m := made(t, c, schedules.Options{})
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
			for _, v := range varied(c, runs(t, 3, 6)) {
				r, out := enforced(t, v, m, sched.EnforceOptions{})
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
