package pttest

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/pt"
)

// Code is a piece of code, as an execution came upon it: At is the number of
// instructions before.
type Code struct {
	Space, At, Addr uint64
	Bytes           []byte
}

// Options choose the events of an execution.
type Options struct {
	Threads int  // in as many address spaces, at least 1
	Changes bool // code changes
	Time    bool // the log has the time
	Calm    bool // no interrupts, no mismatched returns
	Loop    int  // out of 100: how often an indirect branch goes back to where it went last
}

// Walk is an execution of a Program.
type Walk struct {
	p    *Program
	o    Options
	enc  *pt.Encoder
	rand Rand

	// Addresses are those of all instructions, in order, if Keep is set.
	Addresses []uint64
	Keep      bool
	// Code is the code that ran.
	Code []Code
	// Count is the number of instructions, Branches that of conditional and
	// indirect branches and returns.
	Count, Branches uint64
	// Clock is the core's clock.
	Clock uint64
	// Told is, for each time that tracing was turned on or off, the clock that the
	// stream's timing packets can give: that at which tracing was turned on, or that of
	// the last word of the log with a time.
	Told []uint64

	threads []thread
	cur     int
	began   uint64 // clock at the begin of the quantum
	told    uint64 // last clock in the log
	words   []emu.BranchWord
	bits    uint64
	nbits   int
	seen    map[seenKey]int // version of a block + 1
}

type thread struct {
	space uint64
	block int
	next  int // instruction in the block
	last  int // where the last indirect branch went
	stack []int
}

type seenKey struct {
	space uint64
	block int
}

// NewWalk makes an execution that is traced by enc.
func NewWalk(p *Program, enc *pt.Encoder, seed uint64, o Options) *Walk {
	w := &Walk{p: p, o: o, enc: enc, rand: Rand(seed*2 + 1), seen: map[seenKey]int{}}
	for i := range max(o.Threads, 1) {
		w.threads = append(w.threads, thread{space: uint64(i + 1), block: w.rand.Below(len(p.blocks))})
	}
	return w
}

// Run executes n blocks, and turns tracing off.
func (w *Walk) Run(n int) {
	w.startTracing()
	for range n {
		w.executeRest()
		if !w.o.Calm && w.rand.Below(64) == 0 {
			w.interrupt()
		}
	}
	w.flushLog()
	w.stopTracing()
}

// stopTracing turns tracing off at the present place.
func (w *Walk) stopTracing() {
	w.enc.Async(w.currentIP())
	w.Told = append(w.Told, w.told)
}

func (w *Walk) startTracing() {
	t := &w.threads[w.cur]
	w.enc.PIP(t.space)
	w.Clock += uint64(w.rand.Below(50))
	w.began = w.Clock
	w.enc.Enable(w.currentIP(), arch.Cycles(w.Clock))
	w.told = w.Clock
	w.Told = append(w.Told, w.told)
}

// currentIP is where the thread is. A block without a terminator ends where the next
// begins.
func (w *Walk) currentIP() uint64 {
	t := &w.threads[w.cur]
	b := &w.p.blocks[t.block]
	if t.next == len(b.starts) {
		return b.endAddress()
	}
	return b.starts[t.next]
}

// interrupt ends a quantum within a block, and begins another: with nothing in
// between, with another thread, or with changed code.
func (w *Walk) interrupt() {
	t := &w.threads[w.cur]
	b := &w.p.blocks[t.block]
	w.noteCode(t)
	for n := w.rand.Below(len(b.starts)); t.next < n; t.next++ {
		w.executeAt(b.starts[t.next])
	}
	w.flushLog()
	if w.rand.Below(3) == 0 { // the next quantum of the same thread
		w.enc.Position(w.currentIP())
		w.began = w.Clock
		w.enc.Clock(arch.Cycles(w.Clock))
		w.told = w.Clock
		return
	}
	w.stopTracing()
	w.changeCode()
	w.cur = w.rand.Below(len(w.threads))
	w.startTracing()
}

// changeCode changes the code of a block that no thread is within.
func (w *Walk) changeCode() {
	i := w.rand.Below(len(w.p.blocks))
	for _, t := range w.threads {
		if t.block == i && t.next > 0 || !w.o.Changes {
			return
		}
	}
	w.p.mutateBlock(i)
}

// noteCode records the code of a block when it runs in a new version.
func (w *Walk) noteCode(t *thread) {
	b := &w.p.blocks[t.block]
	k := seenKey{t.space, t.block}
	if w.seen[k] != b.version+1 {
		w.seen[k] = b.version + 1
		w.Code = append(w.Code, Code{Space: t.space, At: w.Count, Addr: b.addr, Bytes: append([]byte(nil), b.code...)})
	}
}

func (w *Walk) executeAt(addr uint64) {
	w.Count++
	w.Clock += 1 + uint64(addr&3)
	if w.Keep {
		w.Addresses = append(w.Addresses, addr)
	}
}

// executeRest executes the rest of a block.
func (w *Walk) executeRest() {
	t := &w.threads[w.cur]
	b := &w.p.blocks[t.block]
	w.noteCode(t)
	for ; t.next < len(b.starts); t.next++ {
		w.executeAt(b.starts[t.next])
	}
	from := t.block
	t.block, t.next = from+1, 0
	switch b.kind {
	case jump:
		t.block = b.target
	case conditional, shortConditional:
		w.Branches++
		if w.rand.Below(100) < b.bias {
			t.block = b.target
			w.addOutcome(1)
		} else {
			w.addOutcome(0)
		}
	case call:
		w.executeCall(t, from)
		t.block = b.target
	case indirectCall:
		w.executeCall(t, from)
		w.executeIndirect(t, emu.TagTIP)
	case indirectJump:
		w.executeIndirect(t, emu.TagTIP)
	case ret:
		w.executeReturn(t)
	case syscall:
		w.executeSyscall()
	}
}

func (w *Walk) executeCall(t *thread, from int) {
	if len(t.stack) < 200 {
		t.stack = append(t.stack, from+1)
	}
	b := &w.p.blocks[from]
	if b.kind == indirectCall || b.target != from+1 { // none for a call to the next instruction
		w.addWord(emu.TagCall, b.endAddress())
	}
}

// executeIndirect goes to some block, mostly the one it went to before if so asked.
func (w *Walk) executeIndirect(t *thread, tag emu.BranchTag) {
	if w.rand.Below(100) >= w.o.Loop {
		t.last = w.rand.Below(len(w.p.blocks))
	}
	t.block = t.last
	w.Branches++
	w.addWord(tag, w.p.blocks[t.block].addr)
}

func (w *Walk) executeReturn(t *thread) {
	n := len(t.stack)
	if n == 0 || !w.o.Calm && w.rand.Below(40) == 0 {
		w.executeIndirect(t, emu.TagRet)
		return
	}
	t.block = t.stack[n-1]
	t.stack = t.stack[:n-1]
	w.Branches++
	w.addWord(emu.TagRet, w.p.blocks[t.block].addr)
}

func (w *Walk) executeSyscall() {
	w.flushLog()
	w.enc.Syscall()
	w.Told = append(w.Told, w.told)
	w.startTracing()
}

// addOutcome adds an outcome to the log, in words of drawn lengths.
func (w *Walk) addOutcome(bit uint64) {
	w.bits = w.bits<<1 | bit
	w.nbits++
	if w.nbits == 47 || w.rand.Below(30) == 0 {
		w.endOutcomes()
	}
}

func (w *Walk) endOutcomes() {
	if w.nbits > 0 {
		w.logWord(emu.TagTNT, uint64(w.nbits)<<48|w.bits)
		w.bits, w.nbits = 0, 0
	}
}

func (w *Walk) addWord(tag emu.BranchTag, payload uint64) {
	w.endOutcomes()
	w.logWord(tag, payload&(1<<48-1))
	if w.o.Time && w.rand.Below(4) == 0 {
		w.logWord(emu.TagTime, w.Clock-w.began)
		w.told = w.Clock
	}
	if len(w.words) > 1000 {
		w.flushLog()
	}
}

// logWord adds a word as the engine lays it out.
func (w *Walk) logWord(tag emu.BranchTag, payload uint64) {
	w.words = append(w.words, emu.BranchWord(uint64(tag)<<60|payload))
}

func (w *Walk) flushLog() {
	w.endOutcomes()
	w.enc.Log(w.words)
	w.words = w.words[:0]
}
