package syncops

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// frame is a recognised function that a thread is in, or, without one, the
// handler of a signal: the handler's calls are not part of the operation that the signal
// interrupted.
type frame struct {
	function *function
	entry    arch.Addr
	sp, ret  uint64 // at the entry; of a handler its first stack pointer
	args     [3]uint64

	object *object
	id     event.ObjectID
	second event.ObjectID
	addr   arch.Addr
	peer   arch.ThreadID
	flags  event.Effects // Inner
	ran    bool          // this thread runs the once routine
	silent bool          // recorded as a whole, or not at all

	// Of a handler on a stack of its own: where that is.
	altStart, altEnd uint64
}

// wasLeft reports whether a thread whose stack pointer is sp has left the frame. A
// function's own frame ends where its return address was; above that is its
// caller's.
func (f *frame) wasLeft(sp uint64) bool {
	if f.altEnd != 0 {
		return sp < f.altStart || sp >= f.altEnd
	}
	return sp > f.sp
}

// isCounted reports whether the thread is within an operation that
// is recorded already.
func (t *thread) isCounted() bool {
	if len(t.frames) == 0 {
		return false
	}
	f := t.frames[len(t.frames)-1].function
	return f != nil && !f.leaves && f.kind == operation
}

// isIntact reports whether the return address of the function is still where it was:
// if not, the thread has left it in a way that was not noticed, and has called
// others since.
func (r *Recognizer) isIntact(f *frame, as *mm.AddressSpace) bool {
	ret, ok := r.readWord(as, arch.Addr(f.sp), 8)
	return ok && ret == f.ret
}

// dropLeftFrames drops the frames that the thread left without returning, by
// its stack pointer.
func (r *Recognizer) dropLeftFrames(t *thread, sp uint64, at *event.Stamp) {
	for n := len(t.frames); n > 0; n-- {
		f := &t.frames[n-1]
		if !f.wasLeft(sp) && (f.function == nil || r.isIntact(f, t.space.as)) {
			return
		}
		r.recordUnwound(t, f, at)
		t.frames = t.frames[:n-1]
	}
}

// unwindAll drops all frames: the thread or its program ends.
func (r *Recognizer) unwindAll(t *thread, at *event.Stamp) {
	for n := len(t.frames); n > 0; n-- {
		r.recordUnwound(t, &t.frames[n-1], at)
		t.frames = t.frames[:n-1]
	}
}

// recordUnwound records that an operation did not return. A condition wait that is
// cancelled has its mutex again.
func (r *Recognizer) recordUnwound(t *thread, f *frame, at *event.Stamp) {
	if f.function != nil && f.function.heap != nil {
		r.emitHeap(t, f, at, event.Unwound, 0)
	}
	if f.function == nil || f.silent {
		return
	}
	e := r.frameEvent(t, f, at, event.Unwound)
	e.Effects |= f.function.after
	r.emit(e)
}

// atReturn handles the return of the innermost functions, if it is one that the
// thread has reached. The frames that were left on the way are dropped.
func (r *Recognizer) atReturn(t *thread, regs *arch.Regs, at *event.Stamp) {
	sp := regs.GPR[arch.RSP] - 8
	r.dropLeftFrames(t, sp, at)
	for n := len(t.frames); n > 0; n-- {
		f := t.frames[n-1]
		if f.function == nil || f.sp != sp {
			return
		}
		t.frames = t.frames[:n-1]
		if f.ret == regs.RIP {
			r.leaveFunction(t, &f, regs, at)
		} else {
			r.recordUnwound(t, &f, at)
		}
	}
}

// atEntry handles the call of a recognised function.
func (r *Recognizer) atEntry(t *thread, called *function, regs *arch.Regs, at *event.Stamp) {
	sp := regs.GPR[arch.RSP]
	ret, ok := r.readWord(t.space.as, arch.Addr(sp), 8)
	if !ok {
		return
	}
	r.dropLeftFrames(t, sp, at)
	switch called.kind {
	case jump:
		r.dropLeftFrames(t, r.longjmpStack(t, regs), at)
		return
	case catch:
		return
	}
	if n := len(t.frames); n > 0 {
		switch f := &t.frames[n-1]; {
		case f.function == nil || f.sp != sp:
		case f.ret == ret && f.entry != arch.Addr(regs.RIP):
			// A jump from the end of one function to another, as call_once does to
			// pthread_once: the same call still.
		case f.ret == ret && f.function.op == event.OpSpinLock && f.args[0] == regs.GPR[arch.RDI]:
			// A round of waiting: glibc's pthread_spin_lock jumps to its begin.
			return
		default:
			// The same place again: the earlier call was left.
			r.recordUnwound(t, f, at)
			t.frames = t.frames[:n-1]
		}
	}
	if called.kind == routine {
		r.enterRoutine(t, arch.Addr(regs.RIP), sp, ret)
	}
	if called.kind == routine || t.isCounted() || t.isLeaving() && called.leaves {
		return
	}
	f := frame{
		function: called, entry: arch.Addr(regs.RIP), sp: sp, ret: ret, peer: arch.NoThread,
		args: [3]uint64{regs.GPR[arch.RDI], regs.GPR[arch.RSI], regs.GPR[arch.RDX]},
	}
	if called != r.fixed.destructor && t.space.isLibraryCall(arch.Addr(ret), t.space.imageAt(f.entry)) {
		f.flags = event.Inner
	}
	r.enterFunction(t, &f, at)
}

// Where jmp_buf has the stack pointer, in glibc and musl, and where glibc keeps
// key by which it hides that (setjmp.S and tcbhead_t of glibc for x86-64).
const (
	jumpSP      = 48
	guardOffset = 0x30
	guardTurn   = 17
)

// longjmpStack is the stack pointer that longjmp is about to restore. A
// hidden one is recognised by its value after decoding.
func (r *Recognizer) longjmpStack(t *thread, regs *arch.Regs) uint64 {
	sp := regs.GPR[arch.RSP]
	saved, _ := r.readWord(t.space.as, arch.Addr(regs.GPR[arch.RDI]+jumpSP), 8)
	guard, _ := r.readWord(t.space.as, arch.Addr(regs.FSBase+guardOffset), 8)
	clear := bits.RotateLeft64(saved, -guardTurn) ^ guard
	for _, to := range []uint64{clear, saved} {
		if _, mapped := t.space.as.Find(arch.Addr(to)); mapped && to%8 == 0 {
			return to
		}
	}
	return sp
}

// isLeaving reports whether the thread is in a function that does not return, such
// as thrd_exit, which may call another.
func (t *thread) isLeaving() bool {
	n := len(t.frames)
	return n > 0 && t.frames[n-1].function != nil && t.frames[n-1].function.leaves
}

// maxFrames bounds the frames of a thread that leaves functions in ways that
// are not noticed, such as by changing stacks.
const maxFrames = 256

// pushFrame makes f the thread's innermost frame, and has its return noticed.
func (r *Recognizer) pushFrame(t *thread, f *frame) {
	if len(t.frames) == maxFrames {
		t.frames = append(t.frames[:0], t.frames[1:]...)
	}
	t.frames = append(t.frames, *f)
	r.watchReturn(arch.Addr(f.ret))
}

// Places in a signal frame (arch/x86/include/uapi/asm/sigcontext.h): the
// alternate stack, and the interrupted stack pointer.
const (
	frameAltStack, frameAltSize, frameSP = 24, 40, 168
)

// pushHandlers pushes a frame for each signal handler that was set up since the
// thread ran last. Each later one interrupts the one before at its first
// instruction.
func (r *Recognizer) pushHandlers(t *thread, regs *arch.Regs) {
	sp := regs.GPR[arch.RSP]
	list := make([]frame, t.signals)
	for i := len(list) - 1; i >= 0; i-- {
		list[i].sp = sp
		start, _ := r.readWord(t.space.as, arch.Addr(sp+frameAltStack), 8)
		size, _ := r.readWord(t.space.as, arch.Addr(sp+frameAltSize), 8)
		if sp-start < size {
			list[i].altStart, list[i].altEnd = start, start+size
		}
		sp, _ = r.readWord(t.space.as, arch.Addr(sp+frameSP), 8)
	}
	t.signals = 0
	t.frames = append(t.frames, list...)
}

// popHandler drops the frames of a signal handler that returned.
func (r *Recognizer) popHandler(t *thread, at *event.Stamp) {
	for n := len(t.frames); n > 0; n-- {
		f := t.frames[n-1]
		t.frames = t.frames[:n-1]
		if f.function == nil {
			return
		}
		r.recordUnwound(t, &f, at)
	}
}
