package syncops

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Sink takes the recognised operations, in order. Its arguments are valid until it
// returns. The stamps lack the numbers of the event (Seq and Sync).
type Sink interface {
	AddSync(*event.Sync)
	AddObject(*event.Object)
	// AddAllocation takes a call of an allocator: see Config.Heap.
	AddAllocation(*event.Heap)
}

// Engine is the part of the processor that a Recognizer needs: emu.CPU has it.
type Engine interface {
	Regs(*arch.Regs)
	PC() arch.Addr
	SetBreakpoints([]arch.Addr)
	// MuteAtomics says whether the log of atomic instructions is interrupted.
	MuteAtomics(bool)
	// TakeAtomic takes the next entry of that log.
	TakeAtomic(*emu.Atomic) bool
}

// Config chooses the operations to recognise.
type Config struct {
	// Custom are operations besides the known ones.
	Custom []Custom
	// Open opens files of the guest, to look for split-off symbols; nil: none
	// are looked for.
	Open OpenFunc
	// Heap has the calls of malloc and its kin reported to Sink.AddAllocation.
	Heap bool
	// Schedules makes calls of allocators operations, OpAllocate, which order nothing for the
	// program; and it adds the returns of the routines that threads were made for,
	// OpThreadReturn.
	Schedules bool
	// Atomics adds atomic instructions and fences outside of operations; the
	// engine must log them.
	Atomics bool
	// SecondThread has locks, custom operations without effect and atomic instructions recognised only from when the
	// run has a second thread or process: before that they order nothing.
	SecondThread bool
	// Breakpoints are further places to stop at, for others.
	Breakpoints []arch.Addr
}

// Recognizer follows the threads of a run.
type Recognizer struct {
	host  *host
	sink  Sink
	fixed *fixed

	threads   nearmap.Map[arch.ThreadID, *thread]
	spaces    map[*mm.AddressSpace]*space
	files     map[*mm.Object]*file
	objects   map[location]*object
	announced map[event.ObjectID]bool
	returns   map[arch.Addr]bool // return addresses that have breakpoints
	watched   filter             // all addresses that have breakpoints, unless stale
	armed     uint64             // the host's count when the breakpoints were set
	stale     bool               // the breakpoints are out of date
	added     []arch.Addr        // return addresses that need breakpoints, besides
	atomics   bool               // are recorded
	sharing   bool               // there may be memory that processes share
	lone      bool               // Config.SecondThread, and it does not exist yet
	renamed   *thread            // that is about to get another id

	unrecognized bool // a program was without functions that are known

	// Buffers, kept to save allocations.
	regs    arch.Regs
	at      event.Stamp
	scratch event.Sync
	atomic  emu.Atomic
	bytes   [8]byte
}

// host is the part that snapshots share.
type host struct {
	engine Engine
	open   OpenFunc
	others []arch.Addr
	armed  uint64             // how often breakpoints were set
	set    map[arch.Addr]bool // the breakpoints that the engine has
}

// BoundInSnapshot marks that copies of the machine's state share it, but for those
// of another machine.
func (*host) BoundInSnapshot() {}

// New makes a Recognizer of a run that has not begun.
func New(engine Engine, sink Sink, c Config) *Recognizer {
	return &Recognizer{
		atomics: c.Atomics, lone: c.SecondThread, host: &host{engine: engine, open: c.Open, others: c.Breakpoints}, sink: sink, fixed: newFixed(&c),
		spaces: map[*mm.AddressSpace]*space{}, files: map[*mm.Object]*file{},
		objects: map[location]*object{}, announced: map[event.ObjectID]bool{}, returns: map[arch.Addr]bool{},
	}
}

// Recognition is how operations were found: "symbols" if each program of the
// run had functions that are known, or else "futex".
func (r *Recognizer) Recognition() string {
	if r.unrecognized {
		return "futex"
	}
	for _, s := range r.spaces {
		if !s.symbols {
			return "futex"
		}
	}
	return "symbols"
}

// OrdersNothing reports whether an operation orders nothing for the program: it is one for a
// controller alone, which no trace has.
func (r *Recognizer) OrdersNothing(e *event.Sync) bool {
	return e.Op == event.OpAllocate || isHint(e.Op) || e.Op == event.OpCustom && slices.Contains(r.fixed.effectless, e.Object)
}

// Rearm reports that the engine is another one than before.
func (r *Recognizer) Rearm() { r.stale = true }

// ExpectOneThread reports that the run has one thread, as at its beginning (Config.SecondThread). Operations that the thread is
// in are completed as such.
func (r *Recognizer) ExpectOneThread() {
	if !r.lone {
		r.lone, r.stale, r.host.set = true, true, nil
	}
}

// Name is the run-independent name of a live thread.
func (r *Recognizer) Name(id arch.ThreadID) string {
	if t := r.threads.At(id); t != nil {
		return t.name
	}
	return ""
}

// InOperation reports whether a thread is within an operation.
func (r *Recognizer) InOperation(id arch.ThreadID) bool {
	t := r.threads.At(id)
	return t != nil && t.isCounted()
}

// Arguments are those of the outermost operation that a thread is in.
func (r *Recognizer) Arguments(id arch.ThreadID) (args [3]uint64, ok bool) {
	t := r.threads.At(id)
	if t == nil {
		return args, false
	}
	for i := range t.frames {
		if f := &t.frames[i]; f.function != nil && f.function.kind == operation && !f.function.leaves {
			return f.args, true
		}
	}
	return args, false
}

// Library reports whether an address is code of the C library, as a file of its own,
// or of the dynamic linker.
func (r *Recognizer) Library(id arch.ThreadID, pc arch.Addr) (library, linker bool) {
	t := r.threads.At(id)
	if t == nil || t.space == nil {
		return false, false
	}
	i := t.space.imageAt(pc)
	return t.space.ofLibrary(i), i != nil && i.isLinker()
}

func (r *Recognizer) emit(e *event.Sync) { r.sink.AddSync(e) }

// Knows reports whether a thread was met already.
func (r *Recognizer) Knows(id arch.ThreadID) bool { return r.threads.At(id) != nil }

// Running reports that a thread, which is loaded, is about to run.
func (r *Recognizer) Running(task *kernel.Task, at event.Stamp) {
	t := r.threads.At(task.ID())
	switch {
	case t == nil:
		t = r.addFirstThread(task)
	case t.space == nil:
		r.enterProgram(t, task)
	}
	if t.signals > 0 {
		r.host.engine.Regs(&r.regs)
		r.pushHandlers(t, &r.regs)
	}
	// A run does not stop at a breakpoint at its first instruction.
	r.at = at
	r.actOnPlace(t, &r.at)
	r.refreshEngine(t)
}

// SkipUnwatched is Running for a thread that needs nothing where it is, after
// this number of retired instructions. It returns false if the thread may need something.
func (r *Recognizer) SkipUnwatched(id arch.ThreadID, instructions uint64) bool {
	t := r.threads.At(id)
	if t == nil || t.space == nil || t.signals > 0 || t.dying || r.stale || len(r.added) > 0 || r.armed != r.host.armed || r.atomics {
		return false
	}
	pc := r.host.engine.PC()
	if r.watched.mayHave(pc) {
		return false
	}
	t.looked = moment{pc, instructions}
	return true
}

// refreshEngine brings the engine's breakpoints up to date: also after a return to a
// snapshot.
func (r *Recognizer) refreshEngine(t *thread) {
	if r.stale || r.armed != r.host.armed {
		r.setBreakpoints()
	} else if len(r.added) > 0 {
		r.addBreakpoints(r.added)
	}
	if r.atomics {
		r.host.engine.MuteAtomics(r.lone || t.isCounted())
	}
}

// Stopped reports that a thread stopped, and why. The thread is loaded.
func (r *Recognizer) Stopped(id arch.ThreadID, why arch.StopReason, at event.Stamp) {
	t := r.threads.At(id)
	r.at = at
	if r.atomics {
		r.takeAtomics(t, &r.at)
	}
	if why == arch.StopBreakpoint {
		r.actOnPlace(t, &r.at)
		r.refreshEngine(t)
	}
}

// actOnPlace acts on where a thread is: at a return, a recognised function, or
// neither.
func (r *Recognizer) actOnPlace(t *thread, at *event.Stamp) {
	pc := r.host.engine.PC()
	if t.looked == (moment{pc, at.Instructions}) {
		return
	}
	if returns := r.returns[pc]; returns || t.dying || r.entryAt(t.space, pc) != nil {
		r.host.engine.Regs(&r.regs)
		r.lookCloser(t, returns, &r.regs, at)
	}
	t.looked = moment{pc, at.Instructions}
}

func (r *Recognizer) lookCloser(t *thread, returns bool, regs *arch.Regs, at *event.Stamp) {
	if returns {
		r.atReturn(t, regs, at)
	}
	if f := r.entryAt(t.space, arch.Addr(regs.RIP)); f != nil {
		r.atEntry(t, f, regs, at)
	} else if t.dying {
		r.atDestructor(t, regs, at)
	}
}

// entryAt returns the function that is to be recognised at an address, or nil.
func (r *Recognizer) entryAt(s *space, pc arch.Addr) *function {
	f := s.entries.functions[pc]
	if f != nil && r.lone && f.onlyOrders() {
		return nil
	}
	return f
}

// atDestructor handles a stop at a function that is known as a destructor alone.
func (r *Recognizer) atDestructor(t *thread, regs *arch.Regs, at *event.Stamp) {
	for _, k := range t.space.keys {
		if uint64(k.destructor) == regs.RIP {
			r.atEntry(t, r.fixed.destructor, regs, at)
			return
		}
	}
}

// Signalled reports that a signal handler of a thread was set up.
func (r *Recognizer) Signalled(id arch.ThreadID) {
	if t := r.threads.At(id); t != nil {
		t.signals++
	}
}

// Issued reports a system call that was not carried out yet.
func (r *Recognizer) Issued(id arch.ThreadID, number uint64, args [6]uint64, at event.Stamp) {
	t := r.threads.At(id)
	t.call = systemCall{number, args}
	if number == unix.SYS_RT_SIGRETURN {
		r.popHandler(t, &at)
	}
	if number == unix.SYS_FUTEX && !t.isCounted() {
		r.issueFutex(t, args, &at)
	}
}

// Completed reports that a thread's system call was carried out; the thread has not
// continued yet.
func (r *Recognizer) Completed(id arch.ThreadID, number uint64, args [6]uint64, result uint64, at event.Stamp) {
	t := r.threads.At(id)
	if t == nil {
		return
	}
	if linux.Has(number, linux.Executes) {
		if result == 0 {
			r.replaceProgram(t, &at)
		}
		return
	}
	switch number {
	case unix.SYS_FUTEX:
		r.completeFutex(t, result, &at)
		return
	case unix.SYS_SET_TID_ADDRESS:
		t.clearTID = arch.Addr(args[0])
		return
	case unix.SYS_ARCH_PRCTL:
		if args[0] == linux.ArchSetFS && result == 0 {
			t.setTLS(arch.Addr(args[1]))
		}
		return
	}
	r.followMapping(t, number, args, result)
}

// setTLS notes the pthread_t of a program's first thread.
func (t *thread) setTLS(tls arch.Addr) {
	t.tls = tls
	t.space.handles[uint64(tls)] = handle{t.id, t.name}
}

// followMapping follows changes of the address space.
func (r *Recognizer) followMapping(t *thread, number uint64, args [6]uint64, result uint64) {
	if linux.Failed(result) {
		return
	}
	if number == unix.SYS_MMAP && args[0] == 0 {
		args[0] = result
	}
	if sharesMemory(number, args) {
		r.sharing = true
	}
	if t.space.changesCode(number, args) {
		r.rescanSpace(t.space)
	}
}

// watchReturn has a return address noticed. It stays so: the place is likely to
// come again.
func (r *Recognizer) watchReturn(ret arch.Addr) {
	if !r.returns[ret] {
		r.returns[ret] = true
		r.added = append(r.added, ret)
	}
}

// forgetReturns gives up the return addresses in a range that was unmapped.
func (r *Recognizer) forgetReturns(start, end arch.Addr) {
	for ret := range r.returns {
		if start <= ret && ret < end {
			delete(r.returns, ret)
		}
	}
}

// StopAlso replaces Config.Breakpoints in a run that has begun.
func (r *Recognizer) StopAlso(at []arch.Addr) {
	r.host.others, r.host.set = at, nil
	r.setBreakpoints()
}

// setBreakpoints has the engine have the breakpoints that are needed now.
func (r *Recognizer) setBreakpoints() {
	r.host.armed++
	r.stale, r.armed = false, r.host.armed
	list := r.neededBreakpoints()
	r.watched = filter{}
	if len(r.host.set) > 2*len(list)+sparedBreakpoints {
		r.host.set = nil
	}
	r.addBreakpoints(list)
}

// sparedBreakpoints is how many breakpoints of other states of the run the engine keeps at least. The states before and after
// a return to a snapshot have most in common, and a change of breakpoints costs translated code.
const sparedBreakpoints = 4096

// addBreakpoints adds breakpoints to those that the engine has. At one that is not needed nothing is done.
func (r *Recognizer) addBreakpoints(list []arch.Addr) {
	h := r.host
	r.added = nil
	before := len(h.set)
	if h.set == nil {
		h.set = map[arch.Addr]bool{}
		before = -1
	}
	for _, addr := range list {
		h.set[addr] = true
		r.watched.addAddress(addr)
	}
	if len(h.set) != before {
		h.engine.SetBreakpoints(slices.Collect(maps.Keys(h.set))) // which sorts: the order here does not matter
	}
}

// neededBreakpoints lists the addresses that need breakpoints.
func (r *Recognizer) neededBreakpoints() []arch.Addr {
	list := append(make([]arch.Addr, 0, len(r.returns)+256), r.host.others...)
	for ret := range r.returns {
		list = append(list, ret)
	}
	for _, s := range r.spaces {
		for addr := range s.entries.functions {
			if r.entryAt(s, addr) != nil {
				list = append(list, addr)
			}
		}
		if s.dying > 0 {
			for _, k := range s.keys {
				list = append(list, k.destructor)
			}
		}
	}
	return list
}
