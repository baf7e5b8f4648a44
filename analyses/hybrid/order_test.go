package hybrid_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestFutexCallsOfTheLibrary: a futex call of the program has a position in a schedule, and one that the C library makes for a lock
// of its own has none.
func TestFutexCallsOfTheLibrary(t *testing.T) {
	for _, x := range []struct {
		effects event.Effects
		want    int
	}{{event.Release, 1}, {event.Release | event.Inner, 0}} {
		o := hybrid.NewOrderBuilder(hybrid.Rules{
			Ordered: func(uint64) bool { return true }, Forks: func(uint64) bool { return false }, Transparent: func(event.SyncOp) bool { return false },
		})
		at := event.Stamp{Thread: 1000, Instructions: 70}
		o.AddStart(&event.Start{Stamp: event.Stamp{Thread: 1000}, Name: "1"})
		o.AddSyscall(&event.Syscall{Stamp: at, Phase: event.Enter, Number: linux.Futex})
		o.AddSync(&event.Sync{Stamp: at, Op: event.OpFutexWake, Phase: event.Enter, Effects: x.effects})
		o.AddSyscall(&event.Syscall{Stamp: at, Phase: event.Return, Number: linux.Futex, Result: 1})
		s, _ := o.Finish()
		if len(s.Operations) != x.want {
			t.Errorf("effects %b: %d operations, want %d", x.effects, len(s.Operations), x.want)
		}
		for _, c := range []struct {
			first, second uint64
			want          bool
		}{{10, 69, false}, {10, 90, x.want == 0}, {71, 90, false}} {
			if got := o.ContendsBetween(0, c.first, c.second); got != c.want {
				t.Errorf("effects %b, instructions %d to %d: %v, want %v", x.effects, c.first, c.second, got, c.want)
			}
		}
	}
}
