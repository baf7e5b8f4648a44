package syncops

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// enterFunction acts on the call of a function.
func (r *Recognizer) enterFunction(t *thread, f *frame, at *event.Stamp) {
	switch f.function.kind {
	case setSpecific:
		t.specific[uint32(f.args[0])] = f.args[1]
	case threadEnd:
		r.beginDestructors(t)
	case resolver:
		f.silent = true
		r.pushFrame(t, f)
	case destructor:
		r.enterDestructor(t, f, at)
	case allocator:
		r.enterAllocator(t, f, at)
	case body:
		if t.fresh {
			f.silent = true
			r.pushFrame(t, f)
		}
		t.fresh = false
	default:
		r.enterOperation(t, f, at)
	}
}

func (r *Recognizer) enterOperation(t *thread, f *frame, at *event.Stamp) {
	if f.function.leaves {
		r.emit(r.frameEvent(t, f, at, event.Whole))
		r.leaveBody(t, at)
		f.silent = true
		r.pushFrame(t, f)
		return
	}
	if f.function.kind == spinClear {
		r.chooseSpin(t, f)
	}
	if n := f.function.starts; n > 0 && r.fixed.body != nil {
		r.bindEntry(t.space, arch.Addr(f.args[n-1]), r.fixed.body)
	}
	r.findObject(t, f, at)
	e := r.frameEvent(t, f, at, event.Enter)
	e.Effects |= f.function.enter
	if f.function.op == event.OpRWUnlock && f.object != nil {
		if f.object.writer == t.id {
			f.object.writer = arch.NoThread
		} else {
			e.Effects |= event.Shared
		}
	}
	if f.function.op == event.OpSpinUnlock && f.object != nil {
		f.object.writer = arch.NoThread
	}
	if v := f.function.value; v > 0 {
		e.Value = f.args[v-1]
	}
	if h := f.function.hint; h != nil {
		h.describe(e, f)
	}
	r.emit(e)
	if f.function.once {
		r.watchRoutine(t, f)
	}
	if f.function.heap != nil {
		r.emitHeap(t, f, at, event.Enter, 0)
	}
	r.pushFrame(t, f)
}

// leaveBody reports a thread that leaves its routine, if that is to be reported.
func (r *Recognizer) leaveBody(t *thread, at *event.Stamp) {
	if r.fixed.body == nil {
		return
	}
	e := event.Sync{Stamp: *at, Op: event.OpThreadReturn, Phase: event.Whole, Object: r.threadObject(at, t.name), Peer: arch.NoThread}
	e.Thread = t.id
	r.emit(&e)
}

// chooseSpin distinguishes pthread_spin_init from pthread_spin_unlock where they are one
// function: an unlock is of a lock that is held.
func (r *Recognizer) chooseSpin(t *thread, f *frame) {
	o := r.objects[r.locateObject(t.space, arch.Addr(f.args[0]))]
	if o == nil || o.writer == arch.NoThread {
		f.function = r.fixed.spinInit
	} else {
		f.function = r.fixed.spinUnlock
	}
}

// findObject fills in the object of a call.
func (r *Recognizer) findObject(t *thread, f *frame, at *event.Stamp) {
	fn := f.function
	arg := uint64(0)
	if fn.object > 0 {
		arg = f.args[fn.object-1]
	}
	switch fn.role {
	case inMemory:
		f.addr = arch.Addr(arg)
		f.object = r.objectAt(t, at, f.addr, fn.creates)
		f.id = f.object.id
	case aThread:
		f.addr = arch.Addr(arg)
		if h, ok := t.space.handles[arg]; ok {
			f.id, f.peer = r.threadObject(at, h.name), h.id
		}
	case createdThread:
		f.addr = arch.Addr(arg)
		f.id = r.threadObject(at, t.childName(1))
	case aKey:
		f.addr = arch.Addr(arg)
		if k := t.space.keys[uint32(arg)]; k != nil {
			f.id = k.id
		}
	case createdKey:
		f.addr = arch.Addr(arg)
	case aName:
		f.addr = arch.Addr(arg)
		f.id = r.semaphoreObject(at, t.space, f.addr)
	case theFunction:
		f.addr = f.entry
		f.id = r.announceObject(at, functionObject(fn.name), 0)
	}
	if fn.second > 0 {
		f.second = r.objectAt(t, at, arch.Addr(f.args[fn.second-1]), false).id
	}
}

// leaveFunction acts on the return of a function.
func (r *Recognizer) leaveFunction(t *thread, f *frame, regs *arch.Regs, at *event.Stamp) {
	rax := regs.GPR[arch.RAX]
	switch {
	case f.function.kind == resolver:
		r.bindEntry(t.space, arch.Addr(rax), f.function.target)
		return
	case f.function.kind == allocator:
		r.allocated(t, f, rax, at)
		return
	case f.function.kind == body:
		r.leaveBody(t, at)
		return
	case f.silent:
		return
	}
	ok := f.function.succeeded(rax)
	if ok {
		r.noteSuccess(t, f, rax, at)
	}
	if f.function.heap != nil {
		r.allocated(t, f, rax, at)
	}
	e := r.frameEvent(t, f, at, event.Return)
	e.Result = f.function.resultOf(rax)
	e.Effects |= f.function.after
	switch {
	case f.function.once:
		e.Effects |= event.Acquire
		if f.ran {
			e.Effects |= event.Release
		}
	case ok:
		e.Effects |= f.function.done
	}
	r.emit(e)
	if ok && f.function.destroys {
		r.forgetObject(t.space, f.addr)
	}
}

// noteSuccess notes the effects of a successful operation.
func (r *Recognizer) noteSuccess(t *thread, f *frame, rax uint64, at *event.Stamp) {
	switch f.function.op {
	case event.OpRWWriteLock, event.OpRWTryWriteLock, event.OpRWTimedWriteLock, event.OpRWClockWriteLock,
		event.OpSpinLock, event.OpSpinTryLock:
		f.object.writer = t.id
	case event.OpCreate, event.OpC11ThrdCreate:
		f.peer = t.lastChild
	case event.OpKeyCreate, event.OpC11TssCreate:
		if number, ok := r.readWord(t.space.as, f.addr, 4); ok {
			f.id = r.keyObject(t, at, uint32(number), arch.Addr(f.args[1])).id
		}
	case event.OpKeyDelete, event.OpC11TssDelete:
		delete(t.space.keys, uint32(f.addr))
	case event.OpSemOpen:
		if f.id != 0 {
			r.objects[r.locateObject(t.space, arch.Addr(rax))] = &object{id: f.id, writer: arch.NoThread, lives: 1}
			f.addr = arch.Addr(rax)
		}
	}
}

// frameEvent is a Sync for a frame. It is valid until the next.
func (r *Recognizer) frameEvent(t *thread, f *frame, at *event.Stamp, phase event.Phase) *event.Sync {
	r.scratch = event.Sync{
		Stamp: *at, Op: f.function.op, Phase: phase, Object: f.id, Second: f.second, Addr: f.addr,
		PC: arch.Addr(f.ret), Peer: f.peer, Effects: f.flags,
	}
	r.scratch.Thread = t.id
	return &r.scratch
}

// watchRoutine has the routine noticed that a once operation may call. In glibc
// and musl the word is 2 when the routine has run.
func (r *Recognizer) watchRoutine(t *thread, f *frame) {
	const finished = 2
	if word, ok := r.readWord(t.space.as, f.addr, 4); !ok || word != finished {
		r.bindEntry(t.space, arch.Addr(f.args[1]), r.fixed.routine)
	}
}

// enterRoutine notes that the thread's once operation is the one that runs the
// routine: the routine's operations are recorded.
func (r *Recognizer) enterRoutine(t *thread, entry arch.Addr, sp, ret uint64) {
	n := len(t.frames)
	if n == 0 {
		return
	}
	if top := &t.frames[n-1]; top.function != nil && top.function.once && arch.Addr(top.args[1]) == entry {
		top.ran = true
		r.pushFrame(t, &frame{function: r.fixed.routine, entry: entry, sp: sp, ret: ret, silent: true})
	}
}

// beginDestructors has the destructors noticed of the keys for which the thread
// has a value.
func (r *Recognizer) beginDestructors(t *thread) {
	if t.dying {
		return
	}
	needed := false
	for number, value := range t.specific {
		k := t.space.keys[number]
		needed = needed || value != 0 && k != nil && k.destructor != 0
	}
	if !needed {
		return
	}
	t.dying = true
	t.space.dying++
	r.stale = true
}

// endDestructors undoes beginDestructors at the thread's end.
func (r *Recognizer) endDestructors(t *thread) {
	if t.dying && t.space != nil {
		t.space.dying--
		r.stale = true
	}
}

// enterDestructor records the call of a key's destructor, if it is one: the
// function can be any, such as free, and be called for other reasons.
func (r *Recognizer) enterDestructor(t *thread, f *frame, at *event.Stamp) {
	if !t.dying || t.dyingSP != 0 && t.dyingSP != f.sp {
		return
	}
	number, k := t.dueKey(f.entry, f.args[0])
	if k == nil {
		return
	}
	t.dyingSP, t.lastKey = f.sp, int64(number)
	t.specific[number] = 0
	f.id, f.addr = k.id, arch.Addr(f.args[0])
	e := r.frameEvent(t, f, at, event.Enter)
	e.Value = f.args[0]
	r.emit(e)
	r.pushFrame(t, f)
}

// dueKey finds the key whose destructor is called: C libraries go through the
// keys by their numbers, again and again while there are values.
func (t *thread) dueKey(entry arch.Addr, value uint64) (number uint32, k *tsdKey) {
	best := int64(-1)
	for n, x := range t.specific {
		key := t.space.keys[n]
		if x != value || key == nil || key.destructor != entry {
			continue
		}
		// The next after the last one, or else the first.
		next, have := int64(n) > t.lastKey, best > t.lastKey
		if best < 0 || next && !have || next == have && int64(n) < best {
			best = int64(n)
		}
	}
	if best < 0 {
		return 0, nil
	}
	return uint32(best), t.space.keys[uint32(best)]
}
