package flow

import (
	"errors"
	"io"
	"iter"
	"math"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var errNoBranches = errs.Define("trace-without-branches",
	"the trace has no branches",
	"The trace was written by heddle record or heddle replay without --pt.",
	"Record them: heddle replay -o NEW --pt TRACE.")

// Piece is a straight run of instructions that a core executed.
type Piece struct {
	decode.Step
	Core    arch.CoreID
	Thread  arch.ThreadID
	Process int32
	// At is how many instructions the core had executed before, a repeated
	// string instruction counted once.
	At uint64
}

// NewDecoder returns a decoder of a core's stream, with the code of the trace.
func NewDecoder(r *trace.Reader, core arch.CoreID) (*decode.Decoder, error) {
	image := decode.NewImage()
	for code, err := range trace.Get[event.Code](r, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if int(core) < len(code.Counts) {
			image.Add(code.Space, code.Counts[core], uint64(code.Addr), code.Bytes)
		}
	}
	key := trace.Key{Kind: trace.PT, ID: uint32(core)}
	return decode.NewDecoder(r.Bytes(key), image, decode.Options{}), nil
}

// batch is how many steps are decoded at a time.
const batch = 1024

// cursor moves forward in the flow of one core.
type cursor struct {
	core    arch.CoreID
	decoder *decode.Decoder
	steps   []decode.Step
	left    []decode.Step // decoded and not given yet
	at      uint64        // instructions before them
	err     error         // the error after them
}

func newCursor(r *trace.Reader, core arch.CoreID) (*cursor, error) {
	d, err := NewDecoder(r, core)
	if err != nil {
		return nil, err
	}
	return &cursor{core: core, decoder: d, steps: make([]decode.Step, batch)}, nil
}

// fillSteps makes sure that there is a step; false at the end, or at an error.
func (c *cursor) fillSteps() bool {
	for len(c.left) == 0 {
		if c.err != nil {
			return false
		}
		var n int
		n, _, c.err = c.decoder.Next(c.steps)
		c.left = c.steps[:n]
	}
	return true
}

// stepUntil gives the steps before instruction end to f, nil to pass over them. It
// returns false when f does, or when decoding ends.
func (c *cursor) stepUntil(end uint64, f func(decode.Step, uint64) bool) bool {
	for c.at < end && c.fillSteps() {
		s := c.left[0]
		c.left = c.left[1:]
		at := c.at
		c.at += uint64(s.Count)
		if f != nil && !f(s, at) {
			return false
		}
	}
	return c.at >= end
}

// decodeError is why decoding ended, nil at the end of the stream.
func (c *cursor) decodeError() error {
	if errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}

// readSwitches lists the context switches of a trace, in their order, with where
// each ends: the count of the core at its next switch.
func readSwitches(r *trace.Reader) ([]span, error) {
	var all []span
	latest := map[arch.CoreID]int{}
	for s, err := range trace.Get[event.Switch](r, trace.Key{Kind: trace.Sideband}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if i, ok := latest[s.Core]; ok {
			all[i].end = s.CoreInstructions
		}
		latest[s.Core] = len(all)
		all = append(all, span{s, math.MaxUint64})
	}
	return all, nil
}

// span is a thread's time on a core, between two context switches.
type span struct {
	event.Switch
	end uint64
}

func (s *span) pieceOf(step decode.Step, at uint64) Piece {
	return Piece{Step: step, Core: s.Core, Thread: s.Thread, Process: s.Process, At: at}
}

// Core iterates over the flow of a core. An error ends it.
func Core(r *trace.Reader, core arch.CoreID) iter.Seq2[Piece, error] {
	return iterateSpans(r, func(s *span) bool { return s.Core == core })
}

// Thread iterates over the flow of a thread. An error ends it.
func Thread(r *trace.Reader, thread arch.ThreadID) iter.Seq2[Piece, error] {
	return iterateSpans(r, func(s *span) bool { return s.Thread == thread })
}

// All iterates over the flow of all threads, one turn of a thread on a core after
// another in the order of their begin: of each thread and of each core in its order. An error ends
// it.
func All(r *trace.Reader) iter.Seq2[Piece, error] {
	return iterateSpans(r, func(*span) bool { return true })
}

// iterateSpans iterates over what was executed in the spans that are wanted, in the
// order in which they began.
func iterateSpans(r *trace.Reader, want func(*span) bool) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if !r.Has(trace.PT) {
			yield(Piece{}, errNoBranches.New())
			return
		}
		spans, err := readSwitches(r)
		if err != nil {
			yield(Piece{}, err)
			return
		}
		cursors := map[arch.CoreID]*cursor{}
		for i := range spans {
			s := &spans[i]
			if !want(s) {
				continue
			}
			c := cursors[s.Core]
			if c == nil {
				if c, err = newCursor(r, s.Core); err != nil {
					yield(Piece{}, err)
					return
				}
				cursors[s.Core] = c
			}
			stopped := false
			c.stepUntil(s.CoreInstructions, nil)
			c.stepUntil(s.end, func(step decode.Step, at uint64) bool {
				stopped = !yield(s.pieceOf(step, at), nil)
				return !stopped
			})
			if stopped {
				return
			}
			if err := c.decodeError(); err != nil {
				yield(Piece{}, err)
				return
			}
		}
	}
}
