package syncops

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// thread is the knowledge about a guest thread.
type thread struct {
	id    arch.ThreadID
	pid   arch.ThreadID // the first thread of its process
	name  string
	space *space // nil between execve and the new program's first instruction

	frames  []frame // operations that are under way, the innermost last
	signals int     // delivered, and not yet looked at

	children  int           // threads and processes that it made
	lastChild arch.ThreadID // the latest of them
	inits     int           // objects that it initialised
	uses      int           // objects without an initialisation that it used first
	keys      int           // keys that it created
	execs     int           // programs that it executed

	top       arch.Addr // of the stack, where the thread began
	low, high arch.Addr // bounds of its own memory
	tls       arch.Addr // thread control block: its pthread_t
	clearTID  arch.Addr
	onStack   []arch.Addr       // objects that are named by this stack
	specific  map[uint32]uint64 // values of keys
	fresh     bool              // has not reached its routine
	dying     bool              // runs destructors
	dyingSP   uint64            // at the first destructor's call
	lastKey   int64             // whose destructor ran last, -1: none

	futex *pendingFutex
	call  systemCall // the latest

	looked moment // when it was looked at last
}

// moment is a point in a thread's execution.
type moment struct {
	pc           arch.Addr
	instructions uint64
}

// systemCall is a system call that was issued.
type systemCall struct {
	number uint64
	args   [6]uint64
}

// pendingFutex is a futex call that was issued.
type pendingFutex struct {
	op     event.SyncOp
	object event.ObjectID
	addr   arch.Addr
	pc     arch.Addr
	inner  event.Effects // Inner or none
	lock   arch.Addr     // that a wait may end with, 0: none
}

// handle is the thread that a pthread_t stands for, until the C library uses
// its memory for another.
type handle struct {
	id   arch.ThreadID
	name string
}

// creation describes a new thread by the system call that makes it.
type creation struct {
	flags         uint64
	stack, tls    uint64
	childTID      arch.Addr
	sharesMemory  bool
	isThread      bool
	ownStack      bool
	clearChildTID bool
}

// creationOf reads the arguments of clone, clone3, fork or vfork.
func (r *Recognizer) creationOf(t *thread, number uint64, args [6]uint64) creation {
	var c creation
	switch number {
	case unix.SYS_CLONE:
		c = creation{flags: args[0], stack: args[1], childTID: arch.Addr(args[3]), tls: args[4]}
	case unix.SYS_CLONE3:
		field := func(at uint64) uint64 {
			x, _ := r.readWord(t.space.as, arch.Addr(args[0]+at), 8)
			return x
		}
		c = creation{flags: field(linux.CloneArgsFlags), childTID: arch.Addr(field(linux.CloneArgsChildTID)), tls: field(linux.CloneArgsTLS)}
		if c.stack = field(linux.CloneArgsStack); c.stack != 0 {
			c.stack += field(linux.CloneArgsStackSize)
		}
	case unix.SYS_VFORK:
		c.flags = unix.CLONE_VM | unix.CLONE_VFORK
	}
	c.sharesMemory = c.flags&unix.CLONE_VM != 0
	c.isThread = c.flags&unix.CLONE_THREAD != 0
	c.ownStack = c.stack != 0
	c.clearChildTID = c.flags&unix.CLONE_CHILD_CLEARTID != 0
	return c
}

// addFirstThread makes the first thread of the run known.
func (r *Recognizer) addFirstThread(task *kernel.Task) *thread {
	t := newThread(task, "1")
	r.threads.Put(t.id, t)
	r.enterProgram(t, task)
	return t
}

func newThread(task *kernel.Task, name string) *thread {
	return &thread{
		id: task.ID(), pid: arch.ThreadID(task.Process().PID()), name: name, lastChild: arch.NoThread,
		specific: map[uint32]uint64{}, lastKey: -1,
	}
}

// replaceProgram notes that the thread's program was replaced.
func (r *Recognizer) replaceProgram(t *thread, at *event.Stamp) {
	r.unwindAll(t, at)
	r.endDestructors(t)
	r.leaveSpace(t)
	t.signals, t.execs, t.futex = 0, t.execs+1, nil
	t.dying, t.dyingSP, t.lastKey = false, 0, -1
	t.tls, t.clearTID, t.specific = 0, 0, map[uint32]uint64{}
	if t.id != t.pid {
		r.renamed = t
	}
}

// enterProgram gives a thread the address space of a program that was just
// loaded.
func (r *Recognizer) enterProgram(t *thread, task *kernel.Task) {
	as := task.Process().Space()
	label := t.name
	if t.execs > 0 {
		label = fmt.Sprintf("%s!%d", t.name, t.execs)
	}
	s := newSpace(as, label)
	r.spaces[as] = s
	t.joinSpace(s)
	t.setStack(as.Layout.StartStack, 0)
	r.rescanSpace(s)
}

// joinSpace makes s the address space of t.
func (t *thread) joinSpace(s *space) {
	t.space = s
	s.users++
	s.tops = append(s.tops, t)
}

// leaveSpace takes t out of its address space.
func (r *Recognizer) leaveSpace(t *thread) {
	s := t.space
	if s == nil {
		return
	}
	t.space = nil
	for _, addr := range t.onStack {
		delete(r.objects, location{space: s, offset: uint64(addr)})
	}
	t.onStack = nil
	s.tops = slices.DeleteFunc(s.tops, func(o *thread) bool { return o == t })
	if s.users--; s.users == 0 {
		r.dropSpace(s)
	}
}

func (r *Recognizer) dropSpace(s *space) {
	delete(r.spaces, s.as)
	r.unrecognized = r.unrecognized || !s.symbols
	r.forgetRange(s, 0, ^arch.Addr(0))
	r.forgetUnmapped()
	r.stale = true
}

// setStack says where the thread's own memory is.
func (t *thread) setStack(top arch.Addr, tls arch.Addr) {
	t.top, t.tls = top, tls
	t.low, t.high = top-min(top, stackReach), top
	if tls >= top && tls-top < tlsReach {
		t.high = tls + arch.PageSize
	}
}

// Started reports that a thread or process was made by a thread's system call,
// and returns its name.
func (r *Recognizer) Started(creator arch.ThreadID, child *kernel.Task, at event.Stamp) string {
	if t := r.renamed; t != nil {
		// execve: it takes the place of its process's first thread.
		r.renamed = nil
		r.threads.Delete(t.id)
		t.id = child.ID()
		r.threads.Put(t.id, t)
		return t.name
	}
	t := r.threads.At(creator)
	if t == nil {
		return "1" // the first of the run: see Running
	}
	if r.lone {
		r.lone, r.stale = false, true
	}
	c := r.creationOf(t, t.call.number, t.call.args)
	t.children++
	n := newThread(child, t.childName(0))
	n.fresh = c.isThread
	t.lastChild = n.id
	r.threads.Put(n.id, n)
	if as := child.Process().Space(); c.sharesMemory {
		n.joinSpace(t.space)
	} else {
		n.joinSpace(t.space.forkSpace(as, n.name))
		r.spaces[as] = n.space
		r.stale = true
	}
	n.setStack(arch.Addr(c.stack), arch.Addr(c.tls))
	if !c.ownStack {
		n.setStack(t.top, t.tls)
		if !c.sharesMemory {
			n.frames, n.specific = slices.Clone(t.frames), maps.Clone(t.specific)
		}
	}
	if c.flags&unix.CLONE_SETTLS == 0 {
		n.tls = t.tls
	}
	if n.tls != 0 && (c.isThread || !c.sharesMemory) {
		n.space.handles[uint64(n.tls)] = handle{n.id, n.name}
	}
	if c.clearChildTID {
		n.clearTID = c.childTID
	}
	r.emitStart(t, n, c, at)
	return n.name
}

// childName is the name of the next child, or of one made before it.
func (t *thread) childName(next int) string { return fmt.Sprintf("%s.%d", t.name, t.children+next) }

// emitStart records the creation, unless it is part of an operation that is
// recorded, and the start.
func (r *Recognizer) emitStart(t, n *thread, c creation, at event.Stamp) {
	id := r.threadObject(&at, n.name)
	e := event.Sync{Stamp: at, Object: id, Peer: n.id, Effects: event.Release}
	if !t.isCounted() {
		e.Op = event.OpFork
		if c.isThread {
			e.Op = event.OpCreate
		}
		r.emit(&e)
	}
	at.Thread, at.Instructions, at.Branches = n.id, 0, 0
	r.emit(&event.Sync{Stamp: at, Op: event.OpThreadStart, Object: id, Peer: t.id, Effects: event.Acquire})
}

// Exited reports that a thread has ended.
func (r *Recognizer) Exited(id arch.ThreadID, at event.Stamp) {
	t := r.threads.At(id)
	if t == nil || t == r.renamed {
		return
	}
	r.unwindAll(t, &at)
	r.emit(&event.Sync{
		Stamp: at, Op: event.OpThreadExit, Object: r.threadObject(&at, t.name), Peer: arch.NoThread, Effects: event.Release,
	})
	if s := t.space; s != nil && !s.symbols && t.clearTID != 0 {
		// Who waits for the thread waits for this word to become 0.
		o := r.objectAt(t, &at, t.clearTID, false)
		r.emit(&event.Sync{
			Stamp: at, Op: event.OpFutexWake, Object: o.id, Addr: t.clearTID, Peer: arch.NoThread, Effects: event.Release,
		})
	}
	r.endDestructors(t)
	r.leaveSpace(t)
	r.threads.Delete(id)
}

// changesCode reports whether a system call changes the mapped code.
func (s *space) changesCode(number uint64, a [6]uint64) bool {
	switch number {
	case unix.SYS_MMAP:
		file := a[2]&unix.PROT_EXEC != 0 && a[3]&unix.MAP_ANONYMOUS == 0
		return file || a[3]&unix.MAP_FIXED != 0 && s.overlapsFile(a[0], a[1])
	case unix.SYS_MUNMAP:
		return s.overlapsFile(a[0], a[1])
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		return a[2]&unix.PROT_EXEC != 0
	case unix.SYS_MREMAP:
		return s.overlapsFile(a[0], max(a[1], a[2]))
	}
	return false
}

// sharesMemory reports whether a system call may map memory that other processes
// can have too.
func sharesMemory(number uint64, a [6]uint64) bool {
	return number == unix.SYS_SHMAT || number == unix.SYS_MMAP && a[3]&unix.MAP_SHARED != 0 && a[2]&unix.PROT_WRITE != 0
}
