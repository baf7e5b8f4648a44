package follow

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

func TestDistance(t *testing.T) {
	for _, x := range []struct {
		d, limited   Distance // limited to 10 instructions
		zero, access bool
	}{
		{Distance{}, Distance{}, true, false},
		{Distance{Instructions: 7, Accesses: 2}, Distance{Instructions: 7, Accesses: 2}, false, false},
		{Distance{Instructions: 10, Accesses: 2}, Distance{Instructions: 10}, false, false},
		{Distance{Instructions: 99}, Distance{Instructions: 10}, false, false},
		{Distance{Accesses: 1}, Distance{Accesses: 1}, false, true},
	} {
		if got := x.d.LimitTo(10); got != x.limited {
			t.Errorf("%+v limited to 10 is %+v, want %+v", x.d, got, x.limited)
		}
		q := x.d.Quantum(3, 1001)
		if x.d.IsZero() != x.zero || x.d.AccessesOnly() != x.access || q.AccessesOnly != x.access || !q.Exact || q.Core != 3 || q.Thread != 1001 {
			t.Errorf("%+v: quantum %+v", x.d, q)
		}
	}
}

// TestPlacing: a schedule of a machine with more cores can be followed on one with fewer.
func TestPlacing(t *testing.T) {
	c, err := sched.New(2, 1, sched.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Ready(1000, 0)
	if !IsRunnable(c, 1000) || IsRunnable(c, 1001) {
		t.Error("thread 1000 alone is runnable")
	}
	for _, x := range []struct{ asked, got arch.CoreID }{{1, 1}, {7, 1}, {arch.NoCore, 1}, {0, 0}} {
		if got := PlaceOn(c, 1000, x.asked); got != x.got {
			t.Errorf("asked for core %d: %d, want %d", x.asked, got, x.got)
		}
	}
}

// TestTimedOut has the results of the manual pages: pthread_mutex_timedlock(3) and
// pthread_cond_timedwait(3) return ETIMEDOUT (110), mtx_timedlock returns thrd_timedout (4 in glibc),
// and sem_timedwait(3) returns -1.
func TestTimedOut(t *testing.T) {
	for _, x := range []struct {
		op     event.SyncOp
		result int64
		want   bool
	}{
		{event.OpMutexTimedLock, 110, true},
		{event.OpMutexTimedLock, 0, false},
		{event.OpMutexLock, 110, false},
		{event.OpCondTimedWait, 110, true},
		{event.OpC11MtxTimedLock, 4, true},
		{event.OpC11MtxTimedLock, 110, false},
		{event.OpSemTimedWait, -1, true},
		{event.OpSemWait, -1, false},
	} {
		if got := TimedOut(&event.Operation{Op: x.op, Result: x.result}); got != x.want {
			t.Errorf("%s with the result %d: %v", x.op, x.result, got)
		}
	}
}
