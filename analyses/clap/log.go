package clap

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Log is the recording of a run, with the facts that are needed to read it: which functions were
// instrumented in which order, and what the compiler knew.
type Log struct {
	Facts     CompilerFacts
	Functions []uint64
	Threads   []ThreadLog
}

// ThreadLog has the records of a thread.
type ThreadLog struct {
	Thread  arch.ThreadID
	Records []byte
}

// Records are numbers in as many bytes as they take, seven bits in each. A path is twice its
// number. An odd number begins another record: pieceRecord, with function, start and end (numbers
// of blocks, from 1; 0 where paths begin and end), the sum of the edges' numbers, the instructions
// that are left out of the first block and those that were executed of the last, and whether the
// call at its end has made a frame; or enteredRecord, with a count and as many pairs of a block and
// how often code that is not instrumented has called from there, which concerns the next record.
const (
	pieceRecord   = 1
	enteredRecord = 3
)

// writeNumbers appends numbers.
func (t *thread) writeNumbers(numbers ...uint64) {
	before := len(t.out)
	for _, n := range numbers {
		t.out = binary.AppendUvarint(t.out, n)
	}
	t.counts.Writes++
	t.counts.Bytes += uint64(len(t.out) - before)
}

// finishPath ends a path with an edge.
func (t *thread) finishPath(fr *frame, e *edge) {
	t.writeEntered(fr)
	register := fr.register + e.increment
	if fr.start == nil {
		t.writeNumbers(2 * (fr.f.Base + register))
		return
	}
	t.writeNumbers(pieceRecord, uint64(fr.f.Index), uint64(fr.start.index)+1, 0, register, uint64(fr.skip), 0, 0)
}

// flushFrames ends the paths of all frames where they are.
func (t *thread) flushFrames() {
	for ; len(t.frames) > 0; t.popFrame() {
		fr := t.topFrame()
		start, child := uint64(0), uint64(0)
		if fr.start != nil {
			start = uint64(fr.start.index) + 1
		}
		if fr.child {
			child = 1
		}
		done, _ := fr.at.instructionsBefore(fr.pos)
		t.writeEntered(fr)
		t.writeNumbers(pieceRecord, uint64(fr.f.Index), start, uint64(fr.at.index)+1, fr.register+fr.at.potential, uint64(fr.skip), uint64(done), child)
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
	t.writeNumbers(numbers...)
	fr.entered = nil
}
