package stream

import (
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// handleSync acts on the begin, end or whole of a synchronization operation.
func (x *Run) handleSync(e *event.Sync) error {
	t := x.byID[e.Thread]
	if t == nil {
		return errStamps.New(e.Thread, e.Seq)
	}
	if e.Phase == event.Enter && x.options.Order == races.HappensBefore && usesExistingObject(e.Op) && !x.ignoresAccesses(t) {
		x.reportObjectUse(t, e)
	}
	if !runsProgramCode(e.Op) && e.Phase != event.Whole {
		t.operationDepth = max(0, t.operationDepth+map[bool]int{true: 1, false: -1}[e.Phase == event.Enter])
		x.noteDepth(t)
	}
	if x.options.Operation != nil && x.options.Order == races.ScheduleRelative && !x.options.Operation(e) {
		return nil
	}
	x.counts.Syncs++
	x.follower.Sync(t.Number, e.Branches)
	if x.options.Order == races.HappensBefore && e.Effects&event.Inner == 0 {
		x.applyEffects(t.Number, e)
	}
	if x.options.Sync != nil {
		x.options.Sync(t.Number, x.follower.Number(), e)
	}
	return nil
}

// runsProgramCode reports whether an operation runs code of the program.
func runsProgramCode(op event.SyncOp) bool {
	return op == event.OpOnce || op == event.OpC11CallOnce || op == event.OpKeyDestructor
}

// usesExistingObject reports whether an operation is on an object that exists already.
func usesExistingObject(op event.SyncOp) bool {
	switch op {
	case event.OpMutexInit, event.OpCondInit, event.OpRWInit, event.OpSpinInit, event.OpBarrierInit, event.OpSemInit,
		event.OpC11MtxInit, event.OpC11CndInit:
		return false
	}
	return op >= event.OpMutexDestroy && op <= event.OpOnce && op != event.OpSemOpen ||
		op >= event.OpC11MtxLock && op <= event.OpC11CndBroadcast
}

// objectSize is the least that an object has.
const objectSize = 4

// reportObjectUse reports that an operation reads its object: that races with a thread that frees
// it.
func (x *Run) reportObjectUse(t *Thread, e *event.Sync) {
	page, ok := t.process.space.PageAt(uint64(e.Addr) >> pageShift)
	if !ok {
		return
	}
	x.follower.Send(&races.Access{
		Thread: t.Number, Addr: page<<pageShift + uint64(e.Addr)%pageSize, Size: objectSize, Atomic: true, Other: true,
		PC: e.PC - 1, Branches: e.Branches, Stack: t.runner.OuterStack(uint64(e.PC)),
	}, uint64(e.Addr))
}

// Variants of an object's number: for the releases of readers, and for a barrier's rounds.
const (
	readers = 0x9e3779b97f4a7c15
	rounds  = 0xbf58476d1ce4e5b9
)

// applyEffects passes acquires and releases to the detector.
func (x *Run) applyEffects(thread int, e *event.Sync) {
	object, second := uint64(e.Object), uint64(e.Second)
	switch e.Op {
	case event.OpBarrierInit, event.OpBarrierWait:
		x.handleBarrier(thread, e)
		return
	case event.OpCondSignal, event.OpCondBroadcast, event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait,
		event.OpC11CndSignal, event.OpC11CndBroadcast, event.OpC11CndWait, event.OpC11CndTimedWait:
	default:
		if e.Effects&event.Acquire != 0 {
			x.follower.Acquire(thread, object)
			if e.Effects&event.Shared == 0 {
				x.follower.Acquire(thread, object^readers)
			}
		}
		if e.Effects&event.Release != 0 {
			if e.Effects&event.Shared != 0 {
				object ^= readers
			}
			x.follower.Release(thread, object)
		}
	}
	if e.Effects&event.AcquireSecond != 0 {
		x.follower.Acquire(thread, second)
	}
	if e.Effects&event.ReleaseSecond != 0 {
		x.follower.Release(thread, second)
	}
}

// barrier is the state of a barrier: how many threads have arrived, and the round of each that
// waits.
type barrier struct {
	count, arrived uint64
	left           map[uint64]uint64 // threads that left a round
	rounds         map[int]uint64    // of threads that wait
}

// handleBarrier passes a round of a barrier to the detector: a barrier without a known number of
// threads stays in one round.
func (x *Run) handleBarrier(thread int, e *event.Sync) {
	b := x.barriers[e.Object]
	if b == nil || e.Op == event.OpBarrierInit && e.Phase == event.Enter {
		b = &barrier{left: map[uint64]uint64{}, rounds: map[int]uint64{}}
		x.barriers[e.Object] = b
	}
	if e.Op == event.OpBarrierInit {
		b.count = max(b.count, e.Value&0xffffffff)
		return
	}
	switch e.Phase {
	case event.Enter:
		round := uint64(0)
		if b.count > 0 {
			round = b.arrived / b.count
		}
		b.arrived++
		b.rounds[thread] = round
		x.follower.Release(thread, uint64(e.Object)^(round+1)*rounds)
	case event.Return, event.Unwound:
		round := b.rounds[thread]
		delete(b.rounds, thread)
		object := uint64(e.Object) ^ (round+1)*rounds
		if e.Effects&event.Acquire != 0 {
			x.follower.Acquire(thread, object)
		}
		if b.left[round]++; b.count > 0 && b.left[round] == b.count {
			delete(b.left, round)
			x.follower.RemoveObject(object)
		}
	}
}
