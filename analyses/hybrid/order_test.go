package hybrid_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestFutexCallsOfTheLibrary: a futex call of the program has a position in a schedule, and one that the C library makes for a lock
// of its own has one if another thread made one too.
func TestFutexCallsOfTheLibrary(t *testing.T) {
	for _, x := range []struct {
		name      string
		effects   event.Effects
		waits     bool // another thread waits outside of operations
		positions int
	}{
		{"the program's", event.Release, false, 1},
		{"the library's, for an operation", event.Release | event.Inner, false, 0},
		{"the library's", event.Release | event.Inner, true, 2},
	} {
		o := hybrid.NewOrderBuilder(hybrid.Rules{
			Ordered: func(uint64) bool { return true }, Forks: func(uint64) bool { return false }, Transparent: func(event.SyncOp) bool { return false },
		})
		waker, waiter := event.Stamp{Thread: 1000, Instructions: 70}, event.Stamp{Thread: 1001, Instructions: 50}
		o.AddStart(&event.Start{Stamp: event.Stamp{Thread: 1000}, Name: "1"})
		o.AddStart(&event.Start{Stamp: event.Stamp{Thread: 1001}, Name: "1.1"})
		if x.waits {
			o.AddSyscall(&event.Syscall{Stamp: waiter, Phase: event.Enter, Number: linux.Futex})
			o.AddSync(&event.Sync{Stamp: waiter, Op: event.OpFutexWait, Phase: event.Enter, Effects: event.Inner, Object: 1})
		}
		o.AddSyscall(&event.Syscall{Stamp: waker, Phase: event.Enter, Number: linux.Futex})
		o.AddSync(&event.Sync{Stamp: waker, Op: event.OpFutexWake, Phase: event.Enter, Effects: x.effects, Object: 1})
		o.AddSyscall(&event.Syscall{Stamp: waker, Phase: event.Return, Number: linux.Futex, Result: 1})
		if x.waits {
			o.AddSyscall(&event.Syscall{Stamp: waiter, Phase: event.Return, Number: linux.Futex})
		}
		s, _ := o.Finish()
		if len(s.Operations) != x.positions {
			t.Errorf("%s: %d operations, want %d", x.name, len(s.Operations), x.positions)
		}
		for _, c := range []struct {
			first, second uint64
			want          bool
		}{{10, 69, false}, {10, 90, x.positions == 0}, {71, 90, false}} {
			if got := o.ContendsBetween(0, c.first, c.second); got != c.want {
				t.Errorf("%s, instructions %d to %d: %v, want %v", x.name, c.first, c.second, got, c.want)
			}
		}
	}
}
