package balllarus

import (
	"slices"

	"github.com/heddle-dmt/heddle/internal/zydis"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Counts is what the instrumentation did.
type Counts struct {
	// Increments are instructions that set the register or add to it, Writes how
	// often something was written, Bytes what was written.
	Increments, Writes, Bytes uint64
}

// Recorder is the instrumentation at work.
type Recorder struct {
	program *Program
	threads []*thread // in the order of their first steps
	cores   map[event.CoreID]*Counts
}

// NewRecorder is a recorder of a program that has not run yet.
func NewRecorder(p *Program) *Recorder {
	return &Recorder{program: p, cores: map[event.CoreID]*Counts{}}
}

// Cores are the counts by core.
func (r *Recorder) Cores() map[event.CoreID]*Counts { return r.cores }

// Step tells that a thread has executed on a core the instructions from an address to
// another: a straight run, or the begin of one.
func (r *Recorder) Step(id event.ThreadID, core event.CoreID, addr, end uint64) {
	t := r.thread(id)
	if t.counts = r.cores[core]; t.counts == nil {
		t.counts = &Counts{}
		r.cores[core] = t.counts
	}
	if !r.program.code.Instrumented(addr) {
		t.leave(addr)
		return
	}
	t.arrive(addr)
	t.advance(end)
}

func (r *Recorder) thread(id event.ThreadID) *thread {
	i := slices.IndexFunc(r.threads, func(t *thread) bool { return t.id == id })
	if i < 0 {
		i = len(r.threads)
		r.threads = append(r.threads, &thread{id: id, program: r.program})
	}
	return r.threads[i]
}

// Close ends the run: what threads were in the middle of is written. The Log has what
// they have written.
func (r *Recorder) Close() *Log {
	l := &Log{Known: r.program.known}
	for _, t := range r.threads {
		t.flush()
		l.Threads = append(l.Threads, Written{t.id, t.out})
	}
	for _, f := range r.program.functions {
		l.Functions = append(l.Functions, f.Entry)
	}
	return l
}

// thread is what the instrumentation has of a thread.
type thread struct {
	id      event.ThreadID
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
	// register is what the instrumentation adds up.
	register uint64
	// start is where the path begins if that is not where paths begin, behind so many
	// instructions of the block.
	start *Block
	skip  int
	// child tells that the call at the end of the block has made a frame, and away
	// that code that is not instrumented runs.
	child, away bool
	// leaving is the jump to another function that the frame waits behind.
	leaving *edge
	// entered are the blocks of the path from whose calls code that is not
	// instrumented has called instrumented code, and how often.
	entered []entered
}

type entered struct{ block, times int }

func (t *thread) top() *frame { return &t.frames[len(t.frames)-1] }

func (t *thread) pop() { t.frames = t.frames[:len(t.frames)-1] }

// arrive comes to an instruction.
func (t *thread) arrive(addr uint64) {
	if len(t.frames) == 0 {
		t.restart(addr)
		return
	}
	fr := t.top()
	if fr.pos < fr.at.end() {
		if addr != fr.pos {
			t.breaks(addr)
		}
		return
	}
	if !t.goes(fr, addr) {
		t.breaks(addr)
	}
}

// goes comes from the end of a block to an instruction; false: there is no way that
// the code has.
func (t *thread) goes(fr *frame, addr uint64) bool {
	switch fr.at.Kind {
	case zydis.Return:
		t.returns(fr)
		return t.returned(addr)
	case zydis.Call, zydis.IndirectCall:
		return t.called(fr, addr)
	}
	e := fr.at.edgeTo(addr)
	return e != nil && t.take(fr, e)
}

// returns ends a frame at its return, and those that have jumped to its function.
func (t *thread) returns(fr *frame) {
	t.finish(fr, fr.at.next[0])
	t.pop()
	for len(t.frames) > 0 && t.top().leaving != nil {
		t.finish(t.top(), t.top().leaving)
		t.pop()
	}
}

// returned comes back to a frame.
func (t *thread) returned(addr uint64) bool {
	if len(t.frames) == 0 {
		t.restart(addr)
		return true
	}
	fr := t.top()
	return fr.pos == fr.at.end() && addr == fr.pos && t.goes(fr, addr)
}

// called comes from a call to an instruction: that of the function that is called, the
// one behind the call, or one that code that is not instrumented has called.
func (t *thread) called(fr *frame, addr uint64) bool {
	b := fr.at
	expects := t.program.expects(b)
	switch {
	case expects && !fr.child:
		if b.Kind == zydis.Call && addr != b.target || !t.push(addr) {
			return false
		}
		t.frames[len(t.frames)-2].child = true
		return true
	case addr == b.end():
		return t.take(fr, b.edgeTo(addr))
	case t.program.begins(addr):
		fr.enters()
		return t.push(addr)
	}
	return false
}

// enters notes a call by code that is not instrumented.
func (fr *frame) enters() {
	if n := len(fr.entered); n > 0 && fr.entered[n-1].block == fr.at.index {
		fr.entered[n-1].times++
		return
	}
	fr.entered = append(fr.entered, entered{fr.at.index, 1})
}

// push begins a function.
func (t *thread) push(entry uint64) bool {
	f := t.program.function(entry)
	if f == nil {
		return false
	}
	t.counts.Increments++
	t.frames = append(t.frames, frame{f: f, at: f.first(), pos: entry, register: f.enter[0].increment})
	return true
}

// take passes an edge.
func (t *thread) take(fr *frame, e *edge) bool {
	switch {
	case e == nil:
		return false
	case e.tail && e.on:
		fr.leaving, fr.child = e, true
		return t.push(e.addr)
	case e.to == nil:
		return false
	case e.back:
		t.finish(fr, e)
		fr.start, fr.register = nil, e.init.increment
		t.counts.Increments++
	default:
		fr.register += e.increment
		if e.increment != 0 {
			t.counts.Increments++
		}
	}
	fr.at, fr.pos, fr.child, fr.away = e.to, e.to.Addr, false, false
	return true
}

// leave comes to code that is not instrumented.
func (t *thread) leave(addr uint64) {
	if len(t.frames) == 0 || t.top().away {
		return
	}
	fr := t.top()
	e := fr.at.edgeTo(addr)
	switch {
	case fr.pos < fr.at.end():
	case fr.at.Kind == zydis.Return:
		t.returns(fr)
	case e != nil && e.tail && !fr.at.calls():
		t.finish(fr, e)
		t.pop()
	}
	if len(t.frames) > 0 {
		t.top().away = true
	}
}

// advance goes on in the code up to an address.
func (t *thread) advance(end uint64) {
	for len(t.frames) > 0 {
		fr := t.top()
		b := fr.at
		if end <= b.end() {
			fr.pos = end
			return
		}
		fr.pos = b.end()
		if b.Kind != zydis.Straight || !t.take(fr, b.edgeTo(b.end())) {
			t.breaks(b.end())
		}
	}
}

// breaks comes to an instruction from where no way of the code goes there: a signal, a
// jump over frames.
func (t *thread) breaks(addr uint64) {
	t.flush()
	t.restart(addr)
}

// restart begins somewhere.
func (t *thread) restart(addr uint64) {
	if t.program.begins(addr) && t.push(addr) {
		return
	}
	f, b := t.program.holding(addr)
	if f == nil {
		return
	}
	skip, _ := b.before(addr)
	t.counts.Increments++
	t.frames = append(t.frames, frame{f: f, at: b, pos: addr, register: -b.potential, start: b, skip: skip})
}
