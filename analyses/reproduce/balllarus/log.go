package balllarus

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Log is what a run has written, with what is needed to read it: which functions were
// instrumented in which order, and what the compiler knew.
type Log struct {
	Known     Known
	Functions []uint64
	Threads   []Written
}

// Written is what a thread has written.
type Written struct {
	Thread  event.ThreadID
	Records []byte
}

// Records are numbers in as many bytes as they take, seven bits in each. A path is
// twice its number. An odd number begins another record: pieceRecord, with function,
// start and end (numbers of blocks, from 1; 0 where paths begin and end), the sum of
// the edges' numbers, the instructions that are left out of the first block and those
// that were executed of the last, and whether the call at its end has made a frame;
// or enteredRecord, with a count and so many pairs of a block and how often code that
// is not instrumented has called from there, which is about the next record.
const (
	pieceRecord   = 1
	enteredRecord = 3
)

// write appends numbers.
func (t *thread) write(numbers ...uint64) {
	before := len(t.out)
	for _, n := range numbers {
		t.out = binary.AppendUvarint(t.out, n)
	}
	t.counts.Writes++
	t.counts.Bytes += uint64(len(t.out) - before)
}

// finish ends a path with an edge.
func (t *thread) finish(fr *frame, e *edge) {
	t.writeEntered(fr)
	register := fr.register + e.increment
	if fr.start == nil {
		t.write(2 * (fr.f.Base + register))
		return
	}
	t.write(pieceRecord, uint64(fr.f.Index), uint64(fr.start.index)+1, 0, register, uint64(fr.skip), 0, 0)
}

// flush ends the paths of all frames where they are.
func (t *thread) flush() {
	for ; len(t.frames) > 0; t.pop() {
		fr := t.top()
		start, child := uint64(0), uint64(0)
		if fr.start != nil {
			start = uint64(fr.start.index) + 1
		}
		if fr.child {
			child = 1
		}
		done, _ := fr.at.before(fr.pos)
		t.writeEntered(fr)
		t.write(pieceRecord, uint64(fr.f.Index), start, uint64(fr.at.index)+1, fr.register+fr.at.potential, uint64(fr.skip), uint64(done), child)
	}
}

func (t *thread) writeEntered(fr *frame) {
	if len(fr.entered) == 0 {
		return
	}
	numbers := []uint64{enteredRecord, uint64(len(fr.entered))}
	for _, e := range fr.entered {
		numbers = append(numbers, uint64(e.block), uint64(e.times))
	}
	t.write(numbers...)
	fr.entered = nil
}
