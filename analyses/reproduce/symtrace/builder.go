package symtrace

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/paths"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Options say what of a run is followed.
type Options struct {
	// Fault tells that the next instruction of a thread, where its path ends, is where
	// a signal came from. Several may be: Faulting is the number of the one that is
	// taken.
	Fault    bool
	Faulting int
	// Stuck tells of a deadlock; Spins that the run came to its limit, in loops
	// without an end.
	Stuck, Spins bool
	// Shared are addresses that are shared, whatever the paths say.
	Shared []Range
	// Given tells that nothing else is.
	Given bool
	// Only, if set, says of addresses whether they may be found to be shared. Memory
	// that the program allocates behind the image always may.
	Only func(addr uint64) bool
	// Output, if set, is what the program should have printed: that it prints
	// something else is the failure.
	Output []byte
	// Weak has fences become events: under SC they do nothing.
	Weak bool
	// Plain has nothing guessed.
	Plain bool
	// Prefer are values to be tried first where symbols need some, by symbol.
	Prefer map[string]symbolic.Value
	// Known is what an earlier Build has found out of the same run, or nil.
	Known *Known
	// Stop, if set, is asked now and then: Build ends with ErrStopped when it says so.
	Stop func() bool
}

// ErrStopped tells that Options.Stop ended the work.
var ErrStopped = errors.New("it was stopped")

// stopped asks now and then whether the work is to end.
func (b *builder) stopped() bool {
	b.steps++
	return b.options.Stop != nil && b.steps%256 == 1 && b.options.Stop()
}

// location is where a symbol was read: an address, or an array.
type location struct {
	addr uint64
	size int
}

type arrayOf struct {
	object Object
	elem   int
}

// builder follows all threads once.
type builder struct {
	image   *Image
	profile *paths.Profile
	options Options
	pool    *symbolic.Pool
	sharing *sharing
	arrays  map[uint64]arrayOf
	plain   map[uint64]bool // objects that are no arrays
	grew    bool
	// patience is how often each thread's choices may be taken back.
	patience int
	// steps is how many blocks were followed.
	steps int

	blocks   map[blockKey]*block
	recent   [1 << 12]*block // some of them, by the address's last digits
	paths    map[event.ThreadID]*path
	walkers  []*walker
	taken    map[event.ThreadID]bool
	outside         // what threads do for each other by system calls
	listener uint64 // 1 more than the descriptor that is listened on
	// connected are connections that a thread has made, to be tried last by others.
	connected map[uint64]bool
	// unfed tells that what threads do for each other was not known before the round:
	// a thread that leaves its path is not put back.
	unfed     bool
	byPointer map[uint64]*walker
	objects   []Object // allocated
	ids       map[uint64]event.ObjectID
	locks     []uint64       // that ids had in the round before
	counts    map[uint64]int // of barriers
	lockKinds map[uint64]lockKind
	bits      map[string]int // of symbols
	// named are what symbols stand for that are written to a place of a thread's own.
	named   map[string]*symbolic.Expr
	places  map[string]location
	written written // of the round before
	guesses map[string]symbolic.Value
	seen    map[string]symbolic.Value // what the thread knows of the place, if others have not changed it
	history map[location][]uint64
	faults  []fault
	differs []*symbolic.Expr // ways to print something else
}

// fault is a thread that can fault where its path ends, and when: always if there is
// no condition.
type fault struct {
	thread    *walker
	condition *symbolic.Expr
	where     event.Addr
}

// object finds the variable or piece of memory at an address.
func (b *builder) object(addr uint64) (Object, bool) {
	i, found := slices.BinarySearchFunc(b.objects, addr, func(o Object, a uint64) int {
		switch {
		case a < o.Addr:
			return 1
		case a >= o.Addr+o.Size:
			return -1
		}
		return 0
	})
	if found {
		return b.objects[i], true
	}
	return b.image.object(addr)
}

func (b *builder) allocate(o Object) {
	i, found := slices.BinarySearchFunc(b.objects, o.Addr, func(x Object, a uint64) int {
		switch {
		case a < x.Addr:
			return 1
		case a > x.Addr:
			return -1
		}
		return 0
	})
	if found {
		b.objects[i] = o
		return
	}
	b.objects = slices.Insert(b.objects, i, o)
}

// objectID is the number of what is at an address.
func (b *builder) objectID(addr uint64) event.ObjectID {
	id, ok := b.ids[addr]
	if !ok {
		id = event.ObjectID(len(b.ids) + 1)
		b.ids[addr] = id
	}
	return id
}

// barrier is for how many threads a barrier is: glibc has the number in its third
// word.
func (b *builder) barrier(w *walker, at uint64) int {
	if n, ok := b.counts[at]; ok {
		return n
	}
	e := w.mem.load(b.pool, at+8, 4)
	return int(e.Value.Lo)
}

// Where threads have what the loader gives them: memory that nothing else has.
const (
	ownMemory = 0x1000_0000_0000
	ownSize   = 1 << 36
	ownHeap   = 1 << 35
	ownBlock  = 1 << 34 // of the thread pointer
	ownNames  = 1 << 33 // of large expressions
	ownReturn = 0xdead_0000
)

func (b *builder) allocated(addr uint64) bool {
	return addr >= ownMemory && addr < ownMemory+ownSize*uint64(len(b.walkers)+1)
}

func (w *walker) own() uint64 { return ownMemory + ownSize*uint64(w.number) }

// pointer is the thread pointer of a thread that was made, which is its pthread_t.
func (w *walker) pointer() uint64 {
	return w.own() + ownBlock + w.b.image.ThreadPointer%pageSize
}

// walker makes the walker of the next thread.
func (b *builder) walker(id event.ThreadID) *walker {
	w := &walker{Walked: &Walked{ID: id}, b: b, number: len(b.walkers), fixed: map[string]symbolic.Value{}, refused: map[string]bool{}}
	b.walkers = append(b.walkers, w)
	w.path = b.paths[id]
	if w.path == nil {
		w.path = &path{profile: b.profile}
	}
	w.machine.Memory, w.machine.CPUID, w.machine.MXCSR = w, b.image.CPUID, 0x1f80
	w.machine.TSC = func() uint64 { return 0 }
	w.clocks = make([]int, len(b.paths)+maxThreads)
	w.heap, w.files = w.own()+ownHeap, map[uint64]openFile{}
	return w
}

// maxThreads is how many threads may be made that never ran.
const maxThreads = 64

// first makes the walker of the first thread.
func (b *builder) first(id event.ThreadID, prefix uint64) (*walker, error) {
	w := b.walker(id)
	w.machine.State, w.mem = b.image.State, newView(b.image)
	w.stretch()
	pc := w.pc()
	at, ok := w.path.find(position{}, pc)
	if !ok {
		return nil, fmt.Errorf("the path of thread %d never comes to %#x, where it makes the second thread", id, pc)
	}
	w.at = at
	w.Calls = []Call{{After: prefix, Return: pc, Name: "the first part"}}
	return w, nil
}

// create makes the walker of a thread that another makes. Threads have numbers in the
// order in which they were made; one that never ran has no path.
func (b *builder) create(parent *walker, start, arg *symbolic.Expr) *walker {
	id := b.next(start)
	b.taken[id] = true
	w := b.walker(id)
	w.prepare(parent.mem)
	b.byPointer[w.pointer()] = w
	parent.children = append(parent.children, w)
	w.machine.State, w.mem, w.fixed = parent.machine.State, parent.mem.clone(), maps.Clone(parent.fixed)
	w.files = maps.Clone(parent.files)
	w.clear(0, len(w.cells))
	copy(w.clocks, parent.clocks)
	w.stretch()
	w.enter(start, arg)
	return w
}

// untouched is how many blocks a path has at most that does not come to the thread's
// function.
const untouched = 256

// next is the thread that begins with a function: the first that is left, but for those
// whose paths do not come to it, which another thread has made.
func (b *builder) next(start *symbolic.Expr) event.ThreadID {
	for id := b.walkers[0].ID + 1; ; id++ {
		p := b.paths[id]
		if b.taken[id] {
			continue
		}
		if p == nil || len(p.spots) <= untouched || !start.IsConst() {
			return id
		}
		if _, ok := p.find(position{}, start.Value.Lo); ok {
			return id
		}
	}
}

// prepare puts what the thread is known by where the C library has it.
func (w *walker) prepare(mem *view) {
	image, pointer := w.b.image, w.pointer()
	at := pointer - (image.ThreadPointer - image.BlockStart)
	for i := 0; i+8 <= len(image.ThreadBlock); i += 8 {
		word := image.ThreadBlock[i : i+8]
		if valueOf(word).Lo == image.ThreadPointer {
			word = wordBytes(pointer)
		}
		mem.write(at+uint64(i), word)
	}
	if image.ThreadID != 0 {
		mem.write(pointer+image.ThreadID, wordBytes(uint64(w.ID))[:4])
	}
}

// enter puts the thread at the begin of its function.
func (w *walker) enter(start, arg *symbolic.Expr) {
	w.magic = ownReturn
	w.setRegister(offsetRDI, arg)
	w.machine.State.SetWord(vex.OffsetFS, w.pointer())
	if !start.IsConst() {
		w.done = true
		return
	}
	w.machine.State.SetWord(vex.OffsetRIP, start.Value.Lo)
	first, ok := w.path.find(position{}, start.Value.Lo)
	if !ok {
		w.done = true // it never came so far
		return
	}
	stack := w.stackAt(first)
	w.mem.write(stack, wordBytes(w.magic))
	w.machine.State.SetWord(offsetRSP, stack)
	w.at = first
	w.Calls = []Call{{Return: start.Value.Lo, Name: "start"}}
	w.add(model.Event{Kind: model.Begin}, false)
}

// forget undoes the creation of threads.
func (b *builder) forget(all []*walker) {
	for _, w := range all {
		b.forget(w.children)
		delete(b.byPointer, w.pointer())
		delete(b.taken, w.ID)
	}
	b.walkers = b.walkers[:len(b.walkers)-len(all)]
}

// finish follows a thread to its end.
func (b *builder) finish(w *walker) {
	if w.done || w.failure != nil {
		return
	}
	w.failure = w.walk()
}

// merge has a thread know what one that it joined has written.
func (w *walker) merge(child *walker) {
	if w.clocks[child.number] >= child.clocks[child.number] {
		return // another thread has told it
	}
	for t := range w.clocks {
		w.clocks[t] = max(w.clocks[t], child.clocks[t])
	}
	w.stretch()
	for _, g := range child.mem.written() {
		addr := g * granule
		w.mem.store(addr, child.mem.load(w.b.pool, addr, granule))
	}
}

// run follows all threads.
func (b *builder) run(id event.ThreadID, prefix uint64) error {
	if len(b.image.Threads) > 0 {
		b.stand()
	} else if _, err := b.first(id, prefix); err != nil {
		return err
	}
	for i := 0; i < len(b.walkers); i++ {
		b.finish(b.walkers[i])
	}
	for _, w := range b.walkers {
		if w.failure != nil {
			return w.failure
		}
	}
	return nil
}
