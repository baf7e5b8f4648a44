package h3

import (
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
)

// checkpointFinder decides whether a place between two turns can be a checkpoint: whether the state
// of each thread is known there.
type checkpointFinder struct {
	profile   *paths.Profile
	functions map[uint64]symtrace.Function
	first     arch.ThreadID
	threads   map[arch.ThreadID]*pathCalls // for look-up only
	ends      []blockEnding                // by block
}

func newCheckpointFinder(profile *paths.Profile, functions map[uint64]symtrace.Function, first arch.ThreadID) *checkpointFinder {
	s := &checkpointFinder{
		profile: profile, functions: functions, first: first, threads: map[arch.ThreadID]*pathCalls{}, ends: make([]blockEnding, len(profile.Blocks)),
	}
	for i := range profile.Threads {
		t := &profile.Threads[i]
		s.threads[t.ID] = &pathCalls{path: t}
	}
	return s
}

// blockEnding is how a block ends.
type blockEnding uint8

const (
	unknownEnding blockEnding = iota
	plainEnding
	callEnding
	pointerEnding // a call through a pointer that is not the linker's
	returnEnding
)

// pathCalls are the calls that a thread is in, as its path shows them.
type pathCalls struct {
	path  *paths.Thread
	slice int
	block int
	at    uint64 // instructions of the path, up to the block
	stack []frame
	ended blockEnding // of the block before
	after uint64      // the address after it
	// inside is the function that is not followed in which the thread is, and within
	// how many calls are left when it is over; 0: it is in none.
	inside symtrace.Function
	within int
}

// frame is a call that is not over: where it returns to, and whether it was through a
// pointer.
type frame struct {
	back    uint64
	pointer bool
}

// advanceTo advances to where a thread has executed the given number of instructions of its path.
// It returns the next instruction; not ok: at the end of the path.
func (s *checkpointFinder) advanceTo(c *pathCalls, instructions uint64, peek func(uint64, []byte) int) (next uint64, ok bool) {
	for c.slice < len(c.path.Turns) {
		path := c.path.Turns[c.slice].Blocks
		if c.block == len(path) {
			c.slice, c.block = c.slice+1, 0
			continue
		}
		n := path[c.block]
		b := &s.profile.Blocks[n]
		c.enterBlock(uint64(b.Addr), s.functions)
		if offset := instructions - c.at; offset < uint64(len(b.Instructions)) {
			return b.Instructions[offset], true
		}
		if s.ends[n] == unknownEnding {
			s.ends[n] = endingOf(b, peek)
		}
		c.ended, c.after = s.ends[n], uint64(b.Addr)+uint64(b.Bytes)
		c.at += uint64(len(b.Instructions))
		c.block++
	}
	return 0, false
}

// enterBlock is where a block begins, or where the thread is in a block that it has entered.
func (c *pathCalls) enterBlock(addr uint64, functions map[uint64]symtrace.Function) {
	switch c.ended {
	case callEnding, pointerEnding:
		c.stack = append(c.stack, frame{c.after, c.ended == pointerEnding})
	case returnEnding:
		c.returnTo(addr)
	}
	c.ended = plainEnding
	if c.within > len(c.stack) {
		c.within = 0
	}
	if f, ok := functions[addr]; ok && c.within == 0 && len(c.stack) > 0 {
		c.inside, c.within = f, len(c.stack)
	}
}

// returnTo leaves the calls up to the one that returns to an address.
func (c *pathCalls) returnTo(addr uint64) {
	for i := len(c.stack) - 1; i >= 0; i-- {
		if c.stack[i].back == addr {
			c.stack = c.stack[:i]
			return
		}
	}
}

// endingOf finds out how a block ends (SDM volume 2: CALL, RET).
func endingOf(b *paths.Block, peek func(uint64, []byte) int) blockEnding {
	last := b.Instructions[len(b.Instructions)-1]
	code := make([]byte, min(15, uint64(b.Addr)+uint64(b.Bytes)-last))
	peek(last, code)
	for len(code) > 1 && isPrefix(code[0]) {
		code = code[1:]
	}
	const relative = 0x15 // to the instruction: out of the linker's table
	switch {
	case code[0] == 0xe8, code[0] == 0xff && len(code) > 1 && code[1] == relative:
		return callEnding
	case code[0] == 0xff && len(code) > 1 && code[1]>>3&7 == 2:
		return pointerEnding
	case code[0] == 0xc3, code[0] == 0xc2:
		return returnEnding
	}
	return plainEnding
}

// isPrefix reports whether a byte may precede an opcode.
func isPrefix(b byte) bool {
	switch b {
	case 0x66, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x65:
		return true
	}
	return b&0xf0 == 0x40
}

// startReturn is where a thread's function returns to: the second call on its stack, as the C
// library has called it; through a pointer, and before it others. Not ok: the thread is
// not in its function.
func (c *pathCalls) startReturn() (addr uint64, ok bool) {
	if len(c.stack) < 2 || !c.stack[1].pointer {
		return 0, false
	}
	return c.stack[1].back, true
}

// threadsAt are the threads of a machine that stands between two turns; not ok: the state of one of
// them is not known.
func (s *checkpointFinder) threadsAt(h *PausedRun) ([]symtrace.CheckpointThread, bool) {
	var all []symtrace.CheckpointThread
	at := &haltedMachine{PausedRun: h, asleep: map[uint64]bool{}}
	known := true
	for _, t := range h.Stands() {
		c := s.threads[t.Thread]
		if c == nil {
			return nil, false
		}
		next, more := s.advanceTo(c, t.Passed, at.peekMemory)
		stand := symtrace.CheckpointThread{ID: t.Thread, Executed: t.Passed, LastRan: t.Latest}
		concolicrun.SetState(&stand.State, &t.Regs, &t.FP)
		home := true
		if t.Thread != s.first {
			stand.Return, home = c.startReturn()
		}
		if known = known && home && (!more || next == t.Regs.RIP); !known {
			continue
		}
		known = !t.Asked
		if c.within > 0 {
			in := &symtrace.PendingCall{Function: c.inside, Return: c.stack[c.within-1].back, Arguments: t.Arguments}
			stand.Call, known = in, at.resolveCall(&t, in)
		}
		all = append(all, stand)
	}
	return all, known
}
