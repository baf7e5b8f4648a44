package reproduce

import (
	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/reproduce/paths"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// stander tells of places between two slices whether they can be checkpoints: whether
// it is known of each thread what it is doing there.
type stander struct {
	profile   *paths.Profile
	functions map[uint64]symtrace.Function
	first     event.ThreadID
	threads   map[event.ThreadID]*calls // for look-up only
	ends      []ending                  // by block
}

func newStander(profile *paths.Profile, functions map[uint64]symtrace.Function, first event.ThreadID) *stander {
	s := &stander{
		profile: profile, functions: functions, first: first, threads: map[event.ThreadID]*calls{}, ends: make([]ending, len(profile.Blocks)),
	}
	for i := range profile.Threads {
		t := &profile.Threads[i]
		s.threads[t.ID] = &calls{path: t}
	}
	return s
}

// ending is how a block ends.
type ending uint8

const (
	unknownEnding ending = iota
	plainEnding
	callEnding
	pointerEnding // a call through a pointer that is not the linker's
	returnEnding
)

// calls are the calls that a thread is in, as its path shows them.
type calls struct {
	path  *paths.Thread
	slice int
	block int
	at    uint64 // instructions of the path, up to the block
	stack []frame
	ended ending // of the block before
	after uint64 // the address behind that
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

// passed goes on to where a thread has so many instructions of its path behind it. It
// returns the instruction that comes next; not ok: there is none.
func (s *stander) passed(c *calls, instructions uint64, peek func(uint64, []byte) int) (next uint64, ok bool) {
	for c.slice < len(c.path.Slices) {
		path := c.path.Slices[c.slice].Path
		if c.block == len(path) {
			c.slice, c.block = c.slice+1, 0
			continue
		}
		n := path[c.block]
		b := &s.profile.Blocks[n]
		c.enter(uint64(b.Addr), s.functions)
		if behind := instructions - c.at; behind < uint64(len(b.Instructions)) {
			return b.Instructions[behind], true
		}
		if s.ends[n] == unknownEnding {
			s.ends[n] = endOf(b, peek)
		}
		c.ended, c.after = s.ends[n], uint64(b.Addr)+uint64(b.Bytes)
		c.at += uint64(len(b.Instructions))
		c.block++
	}
	return 0, false
}

// enter is where a block begins, or where the thread is in a block that it has entered.
func (c *calls) enter(addr uint64, functions map[uint64]symtrace.Function) {
	switch c.ended {
	case callEnding, pointerEnding:
		c.stack = append(c.stack, frame{c.after, c.ended == pointerEnding})
	case returnEnding:
		c.back(addr)
	}
	c.ended = plainEnding
	if c.within > len(c.stack) {
		c.within = 0
	}
	if f, ok := functions[addr]; ok && c.within == 0 && len(c.stack) > 0 {
		c.inside, c.within = f, len(c.stack)
	}
}

// back leaves the calls up to the one that returns to an address.
func (c *calls) back(addr uint64) {
	for i := len(c.stack) - 1; i >= 0; i-- {
		if c.stack[i].back == addr {
			c.stack = c.stack[:i]
			return
		}
	}
}

// endOf finds out how a block ends (SDM volume 2: CALL, RET).
func endOf(b *paths.Block, peek func(uint64, []byte) int) ending {
	last := b.Instructions[len(b.Instructions)-1]
	code := make([]byte, min(15, uint64(b.Addr)+uint64(b.Bytes)-last))
	peek(last, code)
	for len(code) > 1 && prefix(code[0]) {
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

// prefix tells of a byte that may be before an instruction.
func prefix(b byte) bool {
	switch b {
	case 0x66, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x65:
		return true
	}
	return b&0xf0 == 0x40
}

// home is where a thread's function returns to: the second call on its stack, as the C
// library has called it; through a pointer, and before it others. Not ok: the thread is
// not in its function.
func (c *calls) home() (addr uint64, ok bool) {
	if len(c.stack) < 2 || !c.stack[1].pointer {
		return 0, false
	}
	return c.stack[1].back, true
}

// stands are the threads of a machine that stands between two slices; not ok: it is not
// known of each of them what it is doing.
func (s *stander) stands(h *heddle.Halt) ([]symtrace.Stand, bool) {
	var all []symtrace.Stand
	at := &standstill{Halt: h, asleep: map[uint64]bool{}}
	known := true
	for _, t := range h.Stands() {
		c := s.threads[t.Thread]
		if c == nil {
			return nil, false
		}
		next, more := s.passed(c, t.Passed, at.peek)
		stand := symtrace.Stand{ID: t.Thread, Passed: t.Passed, Latest: t.Latest}
		follow.SetState(&stand.State, &t.Regs, &t.FP)
		home := true
		if t.Thread != s.first {
			stand.Return, home = c.home()
		}
		if known = known && home && (!more || next == t.Regs.RIP); !known {
			continue
		}
		known = !t.Asked
		if c.within > 0 {
			in := &symtrace.Standing{Function: c.inside, Return: c.stack[c.within-1].back, Arguments: t.Arguments}
			stand.In, known = in, at.certain(&t, in)
		}
		all = append(all, stand)
	}
	return all, known
}
