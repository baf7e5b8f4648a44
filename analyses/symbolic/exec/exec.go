package exec

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Kind says where a constraint comes from.
type Kind uint8

// Kinds of constraints.
const (
	// Branch: a conditional branch, or an instruction with a condition inside.
	Branch Kind = iota
	// Target: where an indirect jump, call or return goes.
	Target
	// Address: what is loaded or stored is at the recorded address, or, in memory that
	// does not change, where the same bytes are.
	Address
	// Division does not trap.
	Division
	// Exchange: a compare-and-exchange found what it expected, or did not.
	Exchange
	// Call: an argument of a system call is the recorded one.
	Call
	// Fixed: something that cannot be expressed is what it was; Reason says what.
	Fixed
	// Bound: what a summary of the function Reason says holds for inputs of which
	// strings are no longer than the recorded ones as far as it looked at them.
	Bound
	kindCount
)

var kindNames = [...]string{"branch", "target", "address", "division", "exchange", "call", "fixed", "bound"}

func (k Kind) String() string { return kindNames[k] }

// Constraint is a truth over inputs that held in the recorded run, with the
// instruction at which it came up.
type Constraint struct {
	// Term is the truth, and Expr its expression if that is made: it is for
	// Executor.Constraint.
	Term   Term
	Expr   *symbolic.Expr
	Kind   Kind
	Reason string // of Fixed and Bound
	Thread event.ThreadID
	PC     event.Addr
	// At is how many instructions the thread had executed before.
	At uint64
	// Stmt is the statement of the block, or how many the block has if the
	// constraint is on where it goes; NoStmt: it is the kernel's doing.
	Stmt int
}

// NoStmt stands for no statement of a block.
const NoStmt = -1

// Executed is a block that a thread has executed.
type Executed struct {
	Thread event.ThreadID
	// Number numbers blocks from 0: the same number is the same block.
	Number int
	Block  *vex.Block
	Code   []byte
	// Machine has the values of the temporaries, and how the block was left.
	Machine *vex.Machine
	// Summary is the function that a summary stands for, if the block is executed
	// for one: there are no constraints then.
	Summary string
}

// Access is a load or a store of a piece.
type Access struct {
	PC, Addr uint64
	Value    [2]uint64
	Size     int
	Store    bool
	// Branches is how many branches of the kinds that event.Stamp counts the
	// thread had gone through since the begin of the piece.
	Branches uint32
}

// Code gives the code at an address: it fills b and returns how much of it there
// is.
type Code func(space, addr uint64, b []byte) int

// Stats counts what was executed.
type Stats struct {
	// Instructions were executed, of which Symbolic were in blocks that touched
	// what depends on inputs.
	Instructions, Symbolic uint64
	// Constraints counts those of each kind, and Fixed those of Kind Fixed by
	// reason.
	Constraints [kindCount]uint64
	Fixed       map[string]uint64
}

// Tracer is told of what is executed.
type Tracer interface {
	// Executed tells of a block that has been executed, before the constraints that
	// come of it. What e points to is changed by the next block.
	Executed(e *Executed)
	// Constrained tells of a constraint, without its expression, which may turn out
	// to be a constant. What c points to is changed by the next one.
	Constrained(c *Constraint)
}

// Executor executes a run. It is for one goroutine.
type Executor struct {
	Pool *symbolic.Pool
	// CPUID answers the instruction.
	CPUID func(leaf, subleaf uint32) [4]uint32
	// Constraint, if set, is told of each constraint as it comes up, with its
	// expression, but for those of which that is a constant. What it is given is
	// changed by the next one.
	Constraint func(*Constraint)
	// Tracer, if set, is told of what is executed.
	Tracer Tracer
	// Fresh, if set, is asked of each load: a name that is not empty makes what
	// was loaded a symbol, whatever memory has (H3 section 3.2).
	Fresh func(l *Access, id event.ThreadID) string
	// Constant, if set, gives the bounds of memory around an address that does not
	// change and that another run has, too; two zeros: there is none.
	Constant func(space, addr uint64) (low, high uint64)
	// Marked, if set, is told of the marks of heddle.h.
	Marked func(m *Mark)
	// Check has every expression compared with the recorded value: a failure is
	// an error of Run.
	Check bool
	Stats Stats

	code    Code
	bytes   [longest]byte // that it reads
	threads map[event.ThreadID]*thread
	memory  memory
	blocks  map[blockPlace]*block
	latest  [1 << 13]*block // some of those that were executed last
	terms   *terms
	made    map[Term]*symbolic.Expr
	todo    []Term
	// inputs are symbols by inputs, names others; evaluator knows their values.
	inputs    []*input
	inputsOf  map[string][]int
	names     []named
	nameOf    map[string]int
	evaluator *symbolic.Evaluator
	summaries map[place]Summary
	// resolvers are the functions that choose one with a summary.
	resolvers map[place]Summary
	// functions counts changes of both.
	functions int
	derived   map[string]*Derived
	marks     map[event.ThreadID]int // of inputs
	opaque    map[string]bool        // inputs and symbols that opaque functions gave
	calls     int                    // of opaque functions
	count     int                    // of blocks
	executed  Executed
	// constraint is the latest.
	constraint Constraint
}

// New makes an Executor that reads code by a function.
func New(code Code) *Executor {
	x := &Executor{
		Pool: symbolic.NewPool(), code: code, threads: map[event.ThreadID]*thread{}, blocks: map[blockPlace]*block{},
		terms: newTerms(), made: map[Term]*symbolic.Expr{}, inputsOf: map[string][]int{}, nameOf: map[string]int{},
		summaries: map[place]Summary{}, resolvers: map[place]Summary{}, derived: map[string]*Derived{}, marks: map[event.ThreadID]int{},
		opaque: map[string]bool{},
	}
	x.memory = newMemory()
	x.Stats.Fixed = map[string]uint64{}
	x.evaluator = symbolic.NewEvaluator(x.Recorded)
	return x
}

// Overwrite says that the kernel wrote bytes that depend on no input.
func (x *Executor) Overwrite(space, addr uint64, n int) { x.memory.store(space, addr, n, 0) }

// Fork gives a new space what another one has.
func (x *Executor) Fork(from, to uint64) {
	for k, pg := range x.memory.pages {
		if k.space == from {
			c := *pg
			x.memory.put(place{to, k.number}, &c)
		}
	}
	for k, s := range x.summaries {
		if k.space == from {
			x.summaries[place{to, k.number}] = s
		}
	}
	for k, s := range x.resolvers {
		if k.space == from {
			x.resolvers[place{to, k.number}] = s
		}
	}
	x.functions++
}

// Resume says that a thread goes on with these registers. Those that are not what
// it had depend on inputs no more.
func (x *Executor) Resume(id event.ThreadID, space uint64, s *vex.State) {
	t := x.threads[id]
	if t == nil {
		t = &thread{x: x, id: id}
		t.machine.Memory, t.machine.CPUID, t.machine.TSC, t.machine.MXCSR = t, x.CPUID, t.clock, 0x1f80
		x.threads[id] = t
	}
	t.space = space
	t.take(s)
}

// arguments is how many a system call has, where that is few and frequent; others
// may have six (syscalls(2)).
var arguments = map[uint64]int{
	unix.SYS_READ: 3, unix.SYS_WRITE: 3, unix.SYS_CLOSE: 1, unix.SYS_FSTAT: 2, unix.SYS_LSEEK: 3, unix.SYS_MPROTECT: 3,
	unix.SYS_MUNMAP: 2, unix.SYS_BRK: 1, unix.SYS_RT_SIGACTION: 4, unix.SYS_RT_SIGPROCMASK: 4, unix.SYS_IOCTL: 3,
	unix.SYS_PREAD64: 4, unix.SYS_PWRITE64: 4, unix.SYS_READV: 3, unix.SYS_WRITEV: 3, unix.SYS_SCHED_YIELD: 0,
	unix.SYS_MADVISE: 3, unix.SYS_NANOSLEEP: 2, unix.SYS_GETPID: 0, unix.SYS_EXIT: 1, unix.SYS_EXIT_GROUP: 1, unix.SYS_FCNTL: 3,
	unix.SYS_FSYNC: 1, unix.SYS_FTRUNCATE: 2, unix.SYS_GETTID: 0, unix.SYS_CLOCK_GETTIME: 2, unix.SYS_TGKILL: 3,
	unix.SYS_OPENAT: 4, unix.SYS_NEWFSTATAT: 4, unix.SYS_UNLINKAT: 3, unix.SYS_GETRANDOM: 3, unix.SYS_RSEQ: 4,
}

// Syscall fixes the number and the arguments of the system call that a thread has
// made to what they were: what the kernel does depends on them.
func (x *Executor) Syscall(id event.ThreadID) {
	t := x.threads[id]
	if t == nil || t.registers.none() {
		return
	}
	registers := []int{0, 7, 6, 2, 10, 8, 9} // rax rdi rsi rdx r10 r8 r9
	if n, ok := arguments[t.machine.State.Word(vex.OffsetRAX)]; ok {
		registers = registers[:1+n]
	}
	for _, r := range registers {
		v, e := t.register(vex.OffsetRAX+8*r, 8)
		t.fix(v, e, Call, "")
	}
}

// Signal fixes all registers of a thread that goes to a handler: the kernel stores
// them in memory.
func (x *Executor) Signal(id event.ThreadID) {
	t := x.threads[id]
	if t == nil || t.registers.none() {
		return
	}
	for at := 0; at < len(t.machine.State); at += 8 {
		v, e := t.register(at, min(8, len(t.machine.State)-at))
		t.fix(v, e, Fixed, "registers at a signal")
	}
}

// Exit forgets a thread.
func (x *Executor) Exit(id event.ThreadID) { delete(x.threads, id) }

// add adds a constraint.
func (x *Executor) add(c *Constraint) {
	x.Stats.Constraints[c.Kind]++
	if c.Kind == Fixed {
		x.Stats.Fixed[c.Reason]++
	}
	if x.Tracer != nil {
		x.Tracer.Constrained(c)
	}
	if x.Constraint == nil {
		return
	}
	if c.Expr = x.Express(c.Term); !c.Expr.IsConst() {
		x.Constraint(c)
	}
}

// Move moves whole pages of a space.
func (x *Executor) Move(space, from, to uint64, n int) {
	if from == to {
		return
	}
	for at := uint64(0); at < uint64(n); at += pageSize {
		old, moved := place{space, (from + at) / pageSize}, place{space, (to + at) / pageSize}
		pg := x.memory.pages[old]
		x.memory.put(old, nil)
		x.memory.put(moved, pg)
	}
}
