// Package paths has the path of each thread of a recorded run: the sequence of the
// pieces of code that it executed (H3 section 3.1 and algorithm 1).
//
// Read makes a Profile of the decoded branch traces of the cores and of the context
// switches, and gets nothing else of a recording.
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

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var (
	errCut = errs.Define("reproduce-trace-cut",
		"the branch trace of core {core} ends after {found} instructions, and its context switches after {expected}",
		"The recording did not end in order, or packets of the branch trace are lost.",
		"Record the run again.")
	errForeign = errs.Define("reproduce-trace-switches",
		"the branch trace of core {core} continues past instruction {at}, at which the core switched to thread {thread}",
		"The context switches are those of another run, or the trace is damaged.",
		"Record the run again.")
	errAfterSwitches = errs.Define("reproduce-trace-after-switches",
		"the branch trace of core {core} continues at instruction {at}, after the core's last context switch",
		"The context switches are those of another run, or the trace is damaged.",
		"Record the run again.")
)

// Run is a straight run of instructions that a core executed.
type Run struct {
	// Addr is the first instruction, Count how many there are and Bytes how long they
	// are.
	Addr         arch.Addr
	Count, Bytes uint32
	// AppendAddresses appends the address of each instruction.
	AppendAddresses func(to []uint64) []uint64
}

// Core is the decoded branch trace of a core.
type Core struct {
	ID   arch.CoreID
	Runs iter.Seq2[Run, error]
}

// Block is a piece of code that was executed from its begin to its end.
type Block struct {
	Addr  arch.Addr
	Bytes uint32
	// Instructions are their addresses.
	Instructions []uint64
}

// Turn is a part of a thread's path that it executed on one core without another
// thread in between.
type Turn struct {
	Core arch.CoreID
	// CoreInstructions is how many instructions the core had executed before.
	CoreInstructions uint64
	// Blocks are numbers of blocks.
	Blocks []int32
}

// Thread is the path of a thread: its slices in order.
type Thread struct {
	ID      arch.ThreadID
	Process int32
	Turns   []Turn
}

// Profile is the paths of a run (algorithm 1's Q).
type Profile struct {
	Blocks []Block
	// Threads come in the order of their first turn.
	Threads []Thread
}

// Instructions iterates over the addresses of the instructions that a thread executed.
func (p *Profile) Instructions(t *Thread) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, s := range t.Turns {
			for _, b := range s.Blocks {
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
	r := &reader{known: map[blockKey]int32{}}
	turns := pendingTurns(switches)
	for _, c := range cores {
		if err := r.readCore(c, turns); err != nil {
			return nil, err
		}
	}
	number := map[arch.ThreadID]int{}
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
			of.Turns = append(of.Turns, Turn{Core: t.Core, CoreInstructions: t.CoreInstructions, Blocks: t.path})
		}
	}
	return &r.profile, nil
}

// pendingTurn is a thread's time on a core, up to the core's next switch.
type pendingTurn struct {
	event.Switch
	end  uint64 // instructions of the core
	path []int32
}

func pendingTurns(switches []event.Switch) []pendingTurn {
	turns := make([]pendingTurn, len(switches))
	latest := map[arch.CoreID]int{}
	for i, s := range switches {
		if last, ok := latest[s.Core]; ok {
			turns[last].end = s.CoreInstructions
		}
		latest[s.Core] = i
		turns[i] = pendingTurn{Switch: s, end: math.MaxUint64}
	}
	return turns
}

type blockKey struct {
	addr         arch.Addr
	count, bytes uint32
}

type reader struct {
	profile Profile
	known   map[blockKey]int32
}

// readCore gives the turns of a core their paths.
func (r *reader) readCore(c Core, turns []pendingTurn) error {
	var own []*pendingTurn
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
			return foreignSwitchError(c.ID, own, at)
		}
		own[0].path = append(own[0].path, r.blockNumber(run))
		at += uint64(run.Count)
	}
	if n := len(own); n > 0 && at < own[n-1].CoreInstructions {
		return errCut.New(c.ID, at, own[n-1].CoreInstructions)
	}
	return nil
}

func foreignSwitchError(core arch.CoreID, own []*pendingTurn, at uint64) error {
	if len(own) < 2 {
		return errAfterSwitches.New(core, at)
	}
	return errForeign.New(core, own[0].end, own[1].Thread)
}

// blockNumber is the number of the block that a run is.
func (r *reader) blockNumber(run Run) int32 {
	k := blockKey{run.Addr, run.Count, run.Bytes}
	n, ok := r.known[k]
	if !ok {
		n = int32(len(r.profile.Blocks))
		r.known[k] = n
		r.profile.Blocks = append(r.profile.Blocks, Block{Addr: run.Addr, Bytes: run.Bytes, Instructions: run.AppendAddresses(nil)})
	}
	return n
}
