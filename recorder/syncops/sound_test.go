package syncops_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// sound checks that the recorded order is one that the operations allow: the rules of
// POSIX for each kind of object, by effects and phases alone.
func (r *recording) sound(t testing.TB) {
	t.Helper()
	s := soundness{
		holder: map[event.ObjectID]arch.ThreadID{}, depth: map[event.ObjectID]int{}, posts: map[event.ObjectID]int64{},
		came: map[event.ObjectID]int{}, left: map[event.ObjectID]int{}, size: map[event.ObjectID]int{}, ended: map[event.ObjectID]bool{},
	}
	for i := range r.syncs {
		if problem := s.add(&r.syncs[i]); problem != "" {
			t.Fatalf("event %d: %s: %+v on %s", i, problem, r.syncs[i], r.objects[r.syncs[i].Object].Name)
		}
	}
}

type soundness struct {
	holder map[event.ObjectID]arch.ThreadID // of mutexes and rwlocks
	depth  map[event.ObjectID]int           // how often held: recursive, or by readers
	posts  map[event.ObjectID]int64         // of semaphores: waits that can succeed
	size   map[event.ObjectID]int           // of barriers
	came   map[event.ObjectID]int
	left   map[event.ObjectID]int
	ended  map[event.ObjectID]bool // threads, by object
}

// locking are operations whose effects are those of mutual exclusion.
var locking = []event.SyncOp{
	event.OpMutexLock, event.OpMutexTryLock, event.OpMutexTimedLock, event.OpMutexClockLock, event.OpMutexUnlock,
	event.OpRWReadLock, event.OpRWTryReadLock, event.OpRWTimedReadLock, event.OpRWClockReadLock,
	event.OpRWWriteLock, event.OpRWTryWriteLock, event.OpRWTimedWriteLock, event.OpRWClockWriteLock, event.OpRWUnlock,
	event.OpSpinLock, event.OpSpinTryLock, event.OpSpinUnlock,
	event.OpC11MtxLock, event.OpC11MtxTryLock, event.OpC11MtxTimedLock, event.OpC11MtxUnlock,
}

func (s *soundness) add(e *event.Sync) string {
	if slices.Contains(locking, e.Op) {
		if problem := s.lock(e.Object, e.Thread, e.Effects, event.Acquire, event.Release); problem != "" {
			return problem
		}
	}
	if problem := s.lock(e.Second, e.Thread, e.Effects, event.AcquireSecond, event.ReleaseSecond); problem != "" {
		return problem
	}
	switch e.Op {
	case event.OpSemInit:
		if e.Phase == event.Enter {
			s.posts[e.Object] = int64(e.Value)
		}
	case event.OpSemWait, event.OpSemTryWait, event.OpSemTimedWait, event.OpSemClockWait, event.OpSemPost:
		return s.semaphore(e)
	case event.OpBarrierInit:
		if e.Phase == event.Enter {
			s.size[e.Object] = int(e.Value)
		}
	case event.OpBarrierWait:
		return s.barrier(e)
	case event.OpThreadExit:
		s.ended[e.Object] = true
	case event.OpJoin, event.OpTryJoin, event.OpTimedJoin, event.OpClockJoin, event.OpC11ThrdJoin:
		if e.Effects&event.Acquire != 0 && !s.ended[e.Object] {
			return "joined before its end"
		}
	}
	return ""
}

func (s *soundness) lock(o event.ObjectID, t arch.ThreadID, e, acquire, release event.Effects) string {
	const readers arch.ThreadID = -2
	switch {
	case e&acquire != 0 && e&event.Shared != 0:
		if s.depth[o] > 0 && s.holder[o] != readers {
			return "read while it is written"
		}
		s.holder[o] = readers
		s.depth[o]++
	case e&acquire != 0:
		if s.depth[o] > 0 && s.holder[o] != t {
			return "acquired while another holds it"
		}
		s.holder[o] = t
		s.depth[o]++
	case e&release != 0 && s.depth[o] > 0:
		if e&event.Shared == 0 && s.holder[o] != t {
			return "released by another"
		}
		s.depth[o]--
	}
	return ""
}

func (s *soundness) semaphore(e *event.Sync) string {
	_, known := s.posts[e.Object]
	switch {
	case !known: // a forked process has it from its parent
	case e.Effects&event.Release != 0:
		s.posts[e.Object]++
	case e.Effects&event.Acquire != 0:
		if s.posts[e.Object]--; s.posts[e.Object] < 0 {
			return "more waits than posts"
		}
	}
	return ""
}

func (s *soundness) barrier(e *event.Sync) string {
	o := e.Object
	switch e.Phase {
	case event.Enter:
		s.came[o]++
	case event.Return:
		// All of a round come before any of it leaves.
		round := s.left[o]/s.size[o] + 1
		s.left[o]++
		if s.came[o] < round*s.size[o] {
			return "left before all came"
		}
	}
	return ""
}
