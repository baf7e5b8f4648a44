package dmt

import (
	"github.com/heddle-dmt/heddle/recorder/event"
)

// coarsening is Consequence's adaptive coarsening: after a lock or an unlock a thread
// keeps the turn, and so need neither commit its stores nor get a turn for the next operation, if the
// instructions up to that operation are expected to be few. What is expected is an average of earlier
// numbers, weighted exponentially: for each lock of those after locking it, and for each thread of
// those after unlocking any. The longest turn doubles when a thread gets two turns in succession, and
// halves when another had one in between. All of this depends on instructions and the order of turns
// only.
//
// The averages weigh the last number by a quarter; the paper has no numbers for these constants.
type coarsening struct {
	locks map[event.ObjectID]uint64
	last  *turnThread // that had the turn
}

// coarseThread is a thread's part of coarsening.
type coarseThread struct {
	unlocked uint64 // the average of instructions after an unlock
	longest  uint64 // turn, in instructions
	began    uint64 // its instructions at the start of the turn
	after    uint64 // its instructions at the end of the last operation
	lock     event.ObjectID
	kind     chunkKind
	extended bool // it keeps the turn after an operation
}

// chunkKind is the kind of the operation after which a thread runs.
type chunkKind uint8

const (
	afterOther chunkKind = iota
	afterLock
	afterUnlock
)

// Bounds of the longest turn, and its first value, in instructions.
const (
	leastCoarse = 250
	firstCoarse = 2_000
	mostCoarse  = 64_000
)

func newCoarsening() *coarsening { return &coarsening{locks: map[event.ObjectID]uint64{}} }

// begin notes that a thread has got the turn.
func (c *coarsening) begin(t *turnThread) {
	if c == nil {
		return
	}
	k := &t.coarse
	switch {
	case k.longest == 0:
		k.longest = firstCoarse
	case c.last == t:
		k.longest = min(2*k.longest, mostCoarse)
	default:
		k.longest = max(k.longest/2, leastCoarse)
	}
	c.last = t
	k.began = t.seen
}

// noteOperation notes that an operation of a thread has ended.
func (c *coarsening) noteOperation(t *turnThread, e *event.Sync) {
	k := &t.coarse
	k.after, k.kind = t.seen, afterOther
	switch e.Op {
	case event.OpMutexLock, event.OpMutexTryLock:
		k.kind, k.lock = afterLock, e.Object
	case event.OpMutexUnlock:
		k.kind = afterUnlock
	}
}

// endChunk notes that a thread has reached its next operation, system call or atomic instruction.
func (c *coarsening) endChunk(t *turnThread) {
	if c == nil {
		return
	}
	k := &t.coarse
	ran := t.seen - min(t.seen, k.after)
	average := func(a uint64) uint64 { return (3*a + ran + 3) / 4 }
	switch k.kind {
	case afterLock:
		c.locks[k.lock] = average(c.locks[k.lock])
	case afterUnlock:
		k.unlocked = average(k.unlocked)
	}
	k.kind = afterOther
}

// extends decides, at the end of an operation, whether its thread keeps the turn.
func (c *coarsening) extends(t *turnThread) bool {
	if c == nil {
		return false
	}
	k := &t.coarse
	expected, known := k.unlocked, k.kind == afterUnlock
	if k.kind == afterLock {
		expected, known = c.locks[k.lock]
	}
	k.extended = known && t.seen-k.began+expected < k.longest
	return k.extended
}

// left returns how many instructions are left of an extended turn.
func (k *coarseThread) left(t *turnThread) uint64 {
	return k.longest - min(k.longest, t.seen-k.began)
}

// end notes that a thread's turn is over, and returns the instructions that count for its logical
// clock.
func (c *coarsening) end(t *turnThread) uint64 {
	if c == nil {
		return 0
	}
	return t.seen - t.coarse.began
}
