// Package paths has the path of each thread of a recorded run: which pieces of code
// it executed one after the other (H3 section 3.1 and algorithm 1).
//
// Read makes a Profile of what the branch trace of each core decodes to and of the
// context switches, and uses nothing else of a recording: it is given nothing else.
// Where H3 names basic blocks of LLVM's code by lines, a Block here is a run of
// instructions up to a branch, or to where another thread had its turn.
//
// Invariants:
//
//  1. The blocks of a thread are the instructions that it executed, in its order.
//  2. A trace that is cut, or whose context switches are another run's, is an error:
//     every switch comes where a core stopped.
package paths

import (
	"iter"
	"math"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var (
	errCut = errs.Define("reproduce-trace-cut",
		"the branch trace of core {core} ends after {found} instructions, and its context switches go on to {expected}",
		"The recording did not end in order, or packets of the branch trace are lost.",
		"Record the run again.")
	errForeign = errs.Define("reproduce-trace-switches",
		"the branch trace of core {core} goes on over instruction {at}, where thread {thread} had its turn",
		"The context switches are those of another run, or the trace is damaged.",
		"Record the run again.")
)

// Run is a straight run of instructions that a core executed.
type Run struct {
	// Addr is the first instruction, Count how many there are and Bytes how long they
	// are.
	Addr         event.Addr
	Count, Bytes uint32
	// AppendAddresses appends the address of each instruction.
	AppendAddresses func(to []uint64) []uint64
}

// Core is what a core executed, as its branch trace decodes.
type Core struct {
	ID   event.CoreID
	Runs iter.Seq2[Run, error]
}

// Block is a piece of code that was executed from its begin to its end.
type Block struct {
	Addr  event.Addr
	Bytes uint32
	// Instructions are their addresses.
	Instructions []uint64
}

// Slice is a part of a thread's path that it executed on one core without another
// thread in between.
type Slice struct {
	Core event.CoreID
	// Place is how many instructions the core had executed before.
	Place uint64
	// Path are numbers of blocks.
	Path []int32
}

// Thread is the path of a thread: its slices in order.
type Thread struct {
	ID      event.ThreadID
	Process int32
	Slices  []Slice
}

// Profile is the paths of a run (algorithm 1's Q).
type Profile struct {
	Blocks []Block
	// Threads come in the order of their first turn.
	Threads []Thread
}

// Instructions iterates over the addresses of what a thread executed.
func (p *Profile) Instructions(t *Thread) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, s := range t.Slices {
			for _, b := range s.Path {
				for _, a := range p.Blocks[b].Instructions {
					if !yield(a) {
						return
					}
				}
			}
		}
	}
}

// Read makes the profile of a run from the cores' branch traces and the context
// switches of all cores in their order.
func Read(cores []Core, switches []event.Switch) (*Profile, error) {
	r := &reader{known: map[key]int32{}}
	turns := turnsOf(switches)
	for _, c := range cores {
		if err := r.core(c, turns); err != nil {
			return nil, err
		}
	}
	number := map[event.ThreadID]int{}
	for i := range turns {
		t := &turns[i]
		n, known := number[t.Thread]
		if !known {
			n = len(r.profile.Threads)
			number[t.Thread] = n
			r.profile.Threads = append(r.profile.Threads, Thread{ID: t.Thread, Process: t.Process})
		}
		if len(t.path) > 0 {
			of := &r.profile.Threads[n]
			of.Slices = append(of.Slices, Slice{Core: t.Core, Place: t.CoreInstructions, Path: t.path})
		}
	}
	return &r.profile, nil
}

// turn is a thread's time on a core, up to the core's next switch.
type turn struct {
	event.Switch
	end  uint64 // instructions of the core
	path []int32
}

func turnsOf(switches []event.Switch) []turn {
	turns := make([]turn, len(switches))
	latest := map[event.CoreID]int{}
	for i, s := range switches {
		if last, ok := latest[s.Core]; ok {
			turns[last].end = s.CoreInstructions
		}
		latest[s.Core] = i
		turns[i] = turn{Switch: s, end: math.MaxUint64}
	}
	return turns
}

type key struct {
	addr         event.Addr
	count, bytes uint32
}

type reader struct {
	profile Profile
	known   map[key]int32
}

// core gives the turns of a core their paths.
func (r *reader) core(c Core, turns []turn) error {
	var own []*turn
	for i := range turns {
		if turns[i].Core == c.ID {
			own = append(own, &turns[i])
		}
	}
	at := uint64(0)
	for run, err := range c.Runs {
		if err != nil {
			return err
		}
		for len(own) > 1 && at >= own[0].end {
			own = own[1:]
		}
		if len(own) == 0 || at+uint64(run.Count) > own[0].end {
			return foreign(c.ID, own, at)
		}
		own[0].path = append(own[0].path, r.block(run))
		at += uint64(run.Count)
	}
	if n := len(own); n > 0 && at < own[n-1].CoreInstructions {
		return errCut.New(c.ID, at, own[n-1].CoreInstructions)
	}
	return nil
}

func foreign(core event.CoreID, own []*turn, at uint64) error {
	if len(own) < 2 {
		return errForeign.New(core, at, event.NoThread)
	}
	return errForeign.New(core, own[0].end, own[1].Thread)
}

// block is the number of the block that a run is.
func (r *reader) block(run Run) int32 {
	k := key{run.Addr, run.Count, run.Bytes}
	n, ok := r.known[k]
	if !ok {
		n = int32(len(r.profile.Blocks))
		r.known[k] = n
		r.profile.Blocks = append(r.profile.Blocks, Block{Addr: run.Addr, Bytes: run.Bytes, Instructions: run.AppendAddresses(nil)})
	}
	return n
}
