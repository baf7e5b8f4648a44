package decode

import (
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Run is a straight run of instructions in the code: from an address to the
// first instruction that can go elsewhere. Runs are shared and constant.
type Run struct {
	// Addr is the address of the first instruction.
	Addr uint64
	// Target is where a direct branch at the end goes.
	Target uint64
	// Count is the number of instructions, Bytes their length.
	Count, Bytes uint32
	// Kind is the kind of the last instruction.
	Kind zydis.Kind

	dead    bool // the code has changed
	space   uint64
	lengths []byte
	// The runs that mostly follow: after the end, and at the target of the last
	// instruction, for indirect ones the last such.
	behind, target *Run
}

// End is the address after the last instruction.
func (r *Run) End() uint64 { return r.Addr + uint64(r.Bytes) }

// Step is the execution of the first Count instructions of a run.
type Step struct {
	*Run
	Count uint32
}

// AppendAddresses appends the address of each instruction of the step.
func (s Step) AppendAddresses(to []uint64) []uint64 {
	at := s.Addr
	for _, n := range s.lengths[:s.Count] {
		to = append(to, at)
		at += uint64(n)
	}
	return to
}

// Length is how many bytes the step's instructions have.
func (s Step) Length() (n uint32) {
	if s.Count == s.Run.Count {
		return s.Bytes
	}
	for _, length := range s.lengths[:s.Count] {
		n += uint32(length)
	}
	return n
}

// lengthBefore returns the number of instructions before an address, and whether an
// instruction begins there or the run ends there.
func (r *Run) lengthBefore(addr uint64) (uint32, bool) {
	if addr < r.Addr || addr > r.End() {
		return 0, false
	}
	at := r.Addr
	for i, n := range r.lengths {
		if at >= addr {
			return uint32(i), at == addr
		}
		at += uint64(n)
	}
	return r.Count, at == addr
}

// continuesDirectly reports whether execution continues after the run without a packet.
func (r *Run) continuesDirectly() bool {
	return r.Kind == zydis.Straight || r.Kind == zydis.Jump || r.Kind == zydis.Call
}

// endsIndirectly reports whether the run's last instruction has a TIP.
func (r *Run) endsIndirectly() bool {
	switch r.Kind {
	case zydis.IndirectCall, zydis.IndirectJump, zydis.Return, zydis.Far:
		return true
	}
	return false
}

// maxRun is the number of instructions of the longest run, which bounds the amount of
// code that a change makes void.
const maxRun = 256

type runKey struct{ space, addr uint64 }

const recentBits = 14

// runs is the cache of runs that the decoder has found in the code.
type runs struct {
	image *Image
	known map[runKey]*Run
	pages map[pageKey][]*Run // that have a byte in the page
	code  []byte
	// recent is a direct-mapped cache of known, without its hashing.
	recent [1 << recentBits]*Run
}

func newRuns(image *Image) *runs {
	return &runs{image: image, known: map[runKey]*Run{}, pages: map[pageKey][]*Run{}}
}

// runAt returns the run at an address, or one of no instructions whose Kind says
// the reason. That one is not remembered: the code may be added later.
func (c *runs) runAt(space, addr uint64) *Run {
	slot := &c.recent[addr*0x9e3779b97f4a7c15>>(64-recentBits)]
	if r := *slot; r != nil && r.Addr == addr && r.space == space && !r.dead {
		return r
	}
	r := c.known[runKey{space, addr}]
	if r == nil {
		r = c.discover(space, addr)
	}
	if r.Count > 0 {
		*slot = r
	}
	return r
}

// discover reads the code. Where it ends before a branch does, the run ends
// with the last instruction that is whole.
func (c *runs) discover(space, addr uint64) *Run {
	var lengths [maxRun]byte
	c.code = c.image.readCode(c.code[:0], space, addr, maxRun*15)
	walk := zydis.Walk(c.code, lengths[:])
	r := &Run{
		Addr: addr, Count: uint32(walk.Count), Bytes: uint32(walk.Bytes), Kind: walk.Kind,
		space: space, lengths: append([]byte(nil), lengths[:walk.Count]...),
	}
	r.Target = r.End() + uint64(walk.Relative)
	if walk.Count == 0 {
		return r
	}
	if r.Kind == zydis.Short || r.Kind == zydis.Invalid {
		r.Kind = zydis.Straight
	}
	c.known[runKey{space, addr}] = r
	for n := addr / pageSize; n <= (r.End()-1)/pageSize; n++ {
		k := pageKey{space, n}
		c.pages[k] = append(c.pages[k], r)
	}
	return r
}

// applyChange makes the image's next change and forgets the runs that it concerns.
func (c *runs) applyChange() {
	ch := c.image.applyChange()
	end := ch.addr + uint64(len(ch.code))
	for n := ch.addr / pageSize; n <= (end-1)/pageSize; n++ {
		k := pageKey{ch.space, n}
		alive := c.pages[k][:0]
		for _, r := range c.pages[k] {
			if !r.dead && r.Addr < end && ch.addr < r.End() {
				r.dead = true
				delete(c.known, runKey{r.space, r.Addr})
			}
			if !r.dead {
				alive = append(alive, r)
			}
		}
		c.pages[k] = alive
	}
}
