package clap

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Counts counts the work of the instrumentation.
type Counts struct {
	// Increments are instructions that set the register or add to it, Writes counts writes, Bytes
	// the bytes written.
	Increments, Writes, Bytes uint64
}

// Recorder is the instrumentation at work.
type Recorder struct {
	program *Program
	threads []*thread // in the order of their first steps
	cores   map[arch.CoreID]*Counts
}

// NewRecorder is a recorder of a program that has not run yet.
func NewRecorder(p *Program) *Recorder {
	return &Recorder{program: p, cores: map[arch.CoreID]*Counts{}}
}

// Cores are the counts by core.
func (r *Recorder) Cores() map[arch.CoreID]*Counts { return r.cores }

// Step records that a thread has executed on a core the instructions from an address to another: a
// straight run, or the begin of one.
func (r *Recorder) Step(id arch.ThreadID, core arch.CoreID, addr, end uint64) {
	t := r.threadOf(id)
	if t.counts = r.cores[core]; t.counts == nil {
		t.counts = &Counts{}
		r.cores[core] = t.counts
	}
	if !r.program.code.Instrumented(addr) {
		t.leaveInstrumented(addr)
		return
	}
	t.arriveAt(addr)
	t.advanceTo(end)
}

func (r *Recorder) threadOf(id arch.ThreadID) *thread {
	i := slices.IndexFunc(r.threads, func(t *thread) bool { return t.id == id })
	if i < 0 {
		i = len(r.threads)
		r.threads = append(r.threads, &thread{id: id, program: r.program})
	}
	return r.threads[i]
}

// Close ends the run: unfinished paths are written. The Log has the records of all threads.
func (r *Recorder) Close() *Log {
	l := &Log{Facts: r.program.known}
	for _, t := range r.threads {
		t.flushFrames()
		l.Threads = append(l.Threads, ThreadLog{t.id, t.out})
	}
	for _, f := range r.program.functions {
		l.Functions = append(l.Functions, f.Entry)
	}
	return l
}

// thread is the state of the instrumentation for a thread.
type thread struct {
	id      arch.ThreadID
	program *Program
	frames  []frame
	counts  *Counts
	out     []byte
}

// frame is a call that is not over.
type frame struct {
	f *Function
	// at is the block that is executed, up to the instruction at pos.
	at  *Block
	pos uint64
	// register is the sum so far.
	register uint64
	// start is the block where the path begins, after skip of its instructions, if it does not
	// begin where paths begin.
	start *Block
	skip  int
	// child: the call at the end of the block has made a frame. outside: code that is not
	// instrumented runs.
	child, outside bool
	// leaving is the jump to another function that the frame waits for.
	leaving *edge
	// entered are the blocks of the path from whose calls code that is not
	// instrumented has called instrumented code, and how often.
	entered []entered
}

type entered struct{ block, times int }

func (t *thread) topFrame() *frame { return &t.frames[len(t.frames)-1] }

func (t *thread) popFrame() { t.frames = t.frames[:len(t.frames)-1] }

// arriveAt continues at an instruction.
func (t *thread) arriveAt(addr uint64) {
	if len(t.frames) == 0 {
		t.restartAt(addr)
		return
	}
	fr := t.topFrame()
	if fr.pos < fr.at.endAddr() {
		if addr != fr.pos {
			t.breakPaths(addr)
		}
		return
	}
	if !t.takeWayTo(fr, addr) {
		t.breakPaths(addr)
	}
}

// takeWayTo comes from the end of a block to an instruction; false: there is no way that
// the code has.
func (t *thread) takeWayTo(fr *frame, addr uint64) bool {
	switch fr.at.Kind {
	case zydis.Return:
		t.returnFrame(fr)
		return t.returnTo(addr)
	case zydis.Call, zydis.IndirectCall:
		return t.enterCallee(fr, addr)
	}
	e := fr.at.edgeTo(addr)
	return e != nil && t.passEdge(fr, e)
}

// returnFrame ends a frame at its return, and the frames that have jumped to its function.
func (t *thread) returnFrame(fr *frame) {
	t.finishPath(fr, fr.at.next[0])
	t.popFrame()
	for len(t.frames) > 0 && t.topFrame().leaving != nil {
		t.finishPath(t.topFrame(), t.topFrame().leaving)
		t.popFrame()
	}
}

// returnTo comes back to a frame.
func (t *thread) returnTo(addr uint64) bool {
	if len(t.frames) == 0 {
		t.restartAt(addr)
		return true
	}
	fr := t.topFrame()
	return fr.pos == fr.at.endAddr() && addr == fr.pos && t.takeWayTo(fr, addr)
}

// enterCallee goes from a call to an instruction: that of the function that is called, the one
// after the call, or one that code that is not instrumented has called.
func (t *thread) enterCallee(fr *frame, addr uint64) bool {
	b := fr.at
	expects := t.program.callsInstrumented(b)
	switch {
	case expects && !fr.child:
		if b.Kind == zydis.Call && addr != b.target || !t.pushFunction(addr) {
			return false
		}
		t.frames[len(t.frames)-2].child = true
		return true
	case addr == b.endAddr():
		return t.passEdge(fr, b.edgeTo(addr))
	case t.program.beginsFunction(addr):
		fr.noteEntered()
		return t.pushFunction(addr)
	}
	return false
}

// noteEntered notes a call by code that is not instrumented.
func (fr *frame) noteEntered() {
	if n := len(fr.entered); n > 0 && fr.entered[n-1].block == fr.at.index {
		fr.entered[n-1].times++
		return
	}
	fr.entered = append(fr.entered, entered{fr.at.index, 1})
}

// pushFunction begins a function.
func (t *thread) pushFunction(entry uint64) bool {
	f := t.program.functionAt(entry)
	if f == nil {
		return false
	}
	t.counts.Increments++
	t.frames = append(t.frames, frame{f: f, at: f.firstBlock(), pos: entry, register: f.entryEdges[0].increment})
	return true
}

// passEdge passes an edge.
func (t *thread) passEdge(fr *frame, e *edge) bool {
	switch {
	case e == nil:
		return false
	case e.tail && e.instrumented:
		fr.leaving, fr.child = e, true
		return t.pushFunction(e.addr)
	case e.to == nil:
		return false
	case e.back:
		t.finishPath(fr, e)
		fr.start, fr.register = nil, e.init.increment
		t.counts.Increments++
	default:
		fr.register += e.increment
		if e.increment != 0 {
			t.counts.Increments++
		}
	}
	fr.at, fr.pos, fr.child, fr.outside = e.to, e.to.Addr, false, false
	return true
}

// leaveInstrumented leaves instrumented code.
func (t *thread) leaveInstrumented(addr uint64) {
	if len(t.frames) == 0 || t.topFrame().outside {
		return
	}
	fr := t.topFrame()
	e := fr.at.edgeTo(addr)
	switch {
	case fr.pos < fr.at.endAddr():
	case fr.at.Kind == zydis.Return:
		t.returnFrame(fr)
	case e != nil && e.tail && !fr.at.endsWithCall():
		t.finishPath(fr, e)
		t.popFrame()
	}
	if len(t.frames) > 0 {
		t.topFrame().outside = true
	}
}

// advanceTo continues in the code up to an address.
func (t *thread) advanceTo(end uint64) {
	for len(t.frames) > 0 {
		fr := t.topFrame()
		b := fr.at
		if end <= b.endAddr() {
			fr.pos = end
			return
		}
		fr.pos = b.endAddr()
		if b.Kind != zydis.Straight || !t.passEdge(fr, b.edgeTo(b.endAddr())) {
			t.breakPaths(b.endAddr())
		}
	}
}

// breakPaths continues at an instruction that no edge of the code leads to: a signal, a jump over
// frames.
func (t *thread) breakPaths(addr uint64) {
	t.flushFrames()
	t.restartAt(addr)
}

// restartAt begins somewhere.
func (t *thread) restartAt(addr uint64) {
	if t.program.beginsFunction(addr) && t.pushFunction(addr) {
		return
	}
	f, b := t.program.blockHolding(addr)
	if f == nil {
		return
	}
	skip, _ := b.instructionsBefore(addr)
	t.counts.Increments++
	t.frames = append(t.frames, frame{f: f, at: b, pos: addr, register: -b.potential, start: b, skip: skip})
}
