package symtrace

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/sharing"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// symbolPlace is where a symbol was read: an address, or an array.
type symbolPlace struct {
	addr uint64
	size int
}

// pass follows all threads once.
type pass struct {
	image         *Image
	profile       *paths.Profile
	options       Options
	pool          *symbolic.Pool
	sharing       *sharing.Tracker
	arrays        map[uint64]array
	notArrays     map[uint64]bool // objects that are no arrays
	arraysChanged bool
	// maxBacktracks is how often each thread's choices may be taken back.
	maxBacktracks int
	// blocksRun is how many blocks were followed.
	blocksRun int

	blocks         map[blockKey]*block
	recentBlocks   [1 << 12]*block // some of them, by the address's last digits
	paths          map[arch.ThreadID]*paths.Track
	threads        []*threadExec
	startedThreads map[arch.ThreadID]bool
	interactions          // effects of threads on each other through system calls
	listener       uint64 // 1 more than the descriptor that is listened on
	// connected are connections that a thread has made, to be tried last by others.
	connected map[uint64]bool
	// interactionsUnknown: the interactions were not known before the pass, so a thread that leaves
	// its path is not put back.
	interactionsUnknown bool
	byPointer           map[uint64]*threadExec
	objects             []Object // allocated
	objectIDs           map[uint64]event.ObjectID
	previousLocks       []uint64       // that ids had in the round before
	barrierCounts       map[uint64]int // of barriers
	lockKinds           map[uint64]model.LockKind
	symbolBits          map[string]int // of symbols
	// namedExprs are the expressions behind symbols that are written to a private place of a
	// thread.
	namedExprs     map[string]*symbolic.Expr
	symbolPlaces   map[string]symbolPlace
	previousWrites writtenBytes // of the round before
	guesses        map[string]symbolic.Value
	ownValues      map[string]symbolic.Value // value in the thread's own memory, which others may have changed
	knownValues    map[symbolPlace][]uint64
	faults         []fault
	outputDiffers  *symbolic.Expr // the program prints something else than it should
	status         *symbolic.Expr // the exit status, unless it is known or the program does not exit
}

// objectAt finds the variable or piece of memory at an address.
func (b *pass) objectAt(addr uint64) (Object, bool) {
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
	return b.image.objectAt(addr)
}

func (b *pass) addObject(o Object) {
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

// objectID returns the number of the object at an address.
func (b *pass) objectID(addr uint64) event.ObjectID {
	id, ok := b.objectIDs[addr]
	if !ok {
		id = event.ObjectID(len(b.objectIDs) + 1)
		b.objectIDs[addr] = id
	}
	return id
}

// barrierCount is for how many threads a barrier is: glibc has the number in its third
// word.
func (b *pass) barrierCount(w *threadExec, at uint64) int {
	if n, ok := b.barrierCounts[at]; ok {
		return n
	}
	e := w.memory.Load(b.pool, at+8, 4)
	return int(e.Value.Lo)
}

// Where threads have the memory that the loader and the allocator give them: no other memory is
// there. As in a run it is between the program and its libraries, and what a thread allocates is
// below its stack: some functions of libraries compare addresses.
const (
	ownMemory = 0x6000_0000_0000
	ownSize   = 1 << 36
	ownHeap   = 0
	ownNames  = 8 << 32 // of large expressions
	ownStack  = 10 << 32
	ownBlock  = 12 << 32 // of the thread pointer
	ownReturn = 0xdead_0000

	ownModules = 13 << 32
)

// IsOwn reports whether an address is in memory of a thread's own, which has another address in a run.
func IsOwn(addr uint64) bool { return addr >= ownMemory && addr < ownMemory+ownSize*(maxThreads+1) }

func (b *pass) isAllocated(addr uint64) bool {
	return addr >= ownMemory && addr < ownMemory+ownSize*uint64(len(b.threads)+1)
}

// newThread makes the walker of the next thread.
func (b *pass) newThread(id arch.ThreadID) *threadExec {
	w := &threadExec{pass: b, number: len(b.threads), threadState: threadState{
		ThreadTrace: ThreadTrace{ID: id}, fixed: map[string]symbolic.Value{}, refusedGuesses: map[string]bool{},
	}}
	b.threads = append(b.threads, w)
	w.path = b.paths[id]
	if w.path == nil {
		w.path = &paths.Track{Profile: b.profile}
	}
	w.machine.Memory, w.machine.CPUID, w.machine.MXCSR = w, b.image.CPUID, 0x1f80
	w.machine.TSC = func() uint64 { return w.readClock(unix.CLOCK_MONOTONIC) }
	w.clocks = make([]int, len(b.paths)+maxThreads)
	w.heap, w.files = w.ownBase()+ownHeap, map[uint64]openFile{}
	return w
}

// maxThreads is how many threads may be made that never ran.
const maxThreads = 64

// startFirstThread makes the walker of the first thread.
func (b *pass) startFirstThread(id arch.ThreadID, prefix uint64) (*threadExec, error) {
	w := b.newThread(id)
	w.machine.State, w.memory = b.image.State, symmem.New(b.image.peekChanged)
	w.signalStack.Unknown = true
	w.startStretch()
	pc := w.currentPC()
	at, ok := w.path.FindBlock(paths.Position{}, pc)
	if !ok {
		return nil, fmt.Errorf("the branches of thread %d never reach %#x, where it creates the second thread", id, pc)
	}
	w.at = at
	w.Calls = []Call{{After: prefix, Return: pc, Name: "the first part"}}
	return w, nil
}

// createThread makes the walker of a thread that another makes. Threads have numbers in the
// order in which they were made; one that never ran has no path.
func (b *pass) createThread(parent *threadExec, start, arg *symbolic.Expr) *threadExec {
	id := b.nextThreadID(start)
	b.startedThreads[id] = true
	w := b.newThread(id)
	w.initNewThread(parent.memory)
	b.byPointer[w.threadPointer()] = w
	parent.children = append(parent.children, w)
	w.machine.State, w.memory, w.fixed = parent.machine.State, parent.memory.Fork(), maps.Clone(parent.fixed)
	w.files = maps.Clone(parent.files)
	w.clearSymbols(0, len(w.cells))
	copy(w.clocks, parent.clocks)
	w.startStretch()
	w.enterFunction(start, arg)
	return w
}

// maxForeignBlocks is the maximal length of a path that does not reach its thread's function.
const maxForeignBlocks = 256

// nextThreadID is the thread that begins with a function: the first that is left, except for
// threads whose paths do not reach the function, which another thread created.
func (b *pass) nextThreadID(start *symbolic.Expr) arch.ThreadID {
	for id := b.threads[0].ID + 1; ; id++ {
		p := b.paths[id]
		if b.startedThreads[id] {
			continue
		}
		if p == nil || len(p.Blocks) <= maxForeignBlocks || !start.IsConst() {
			return id
		}
		if _, ok := p.FindBlock(paths.Position{}, start.Value.Lo); ok {
			return id
		}
	}
}

// removeThreads undoes the creation of threads.
func (b *pass) removeThreads(all []*threadExec) {
	for _, w := range all {
		b.removeThreads(w.children)
		delete(b.byPointer, w.threadPointer())
		delete(b.startedThreads, w.ID)
	}
	b.threads = b.threads[:len(b.threads)-len(all)]
}

// finishThread follows a thread to its end.
func (b *pass) finishThread(w *threadExec) {
	if w.finished || w.failure != nil {
		return
	}
	w.failure = w.runToEnd()
}

// runThreads follows all threads.
func (b *pass) runThreads(id arch.ThreadID, prefix uint64) error {
	if len(b.image.Threads) > 0 {
		b.startAtCheckpoint()
	} else if _, err := b.startFirstThread(id, prefix); err != nil {
		return err
	}
	for i := 0; i < len(b.threads); i++ {
		b.finishThread(b.threads[i])
	}
	for _, w := range b.threads {
		if w.failure != nil {
			return w.failure
		}
	}
	return nil
}
