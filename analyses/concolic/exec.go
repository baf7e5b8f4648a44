package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// Kind is the origin of a constraint.
type Kind uint8

// Kinds of constraints.
const (
	// Branch: a conditional branch, or an instruction with a condition inside.
	Branch Kind = iota
	// Target: the target of an indirect jump, call or return.
	Target
	// Address: a load or store is at the recorded address or, in constant memory, at one
	// with the same bytes.
	Address
	// Division does not trap.
	Division
	// Exchange: a compare-and-exchange succeeded, or failed.
	Exchange
	// Call: an argument of a system call is the recorded one.
	Call
	// Fixed: a value that cannot be expressed is the recorded one; Reason says which.
	Fixed
	// Bound: the summary of the function named by Reason is valid, because the strings are
	// no longer than the recorded ones as far as the function read them.
	Bound
	kindCount
)

var kindNames = [...]string{"branch", "target", "address", "division", "exchange", "call", "fixed", "bound"}

func (k Kind) String() string { return kindNames[k] }

// Constraint is a condition on inputs that held in the recorded run, with the instruction
// that caused it.
type Constraint struct {
	// Term is the condition, Expr its expression, which is built for Executor.OnConstraint
	// only.
	Term   Term
	Expr   *symbolic.Expr
	Kind   Kind
	Reason string // of Fixed and Bound
	Thread arch.ThreadID
	PC     arch.Addr
	// At is the number of instructions that the thread had executed before.
	At uint64
	// Stmt is the statement of the block, or the number of statements if the constraint is
	// on the block's successor; NoStmt: it comes from the kernel or a summary.
	Stmt int
}

// NoStmt stands for no statement of a block.
const NoStmt = -1

// BlockExecution is one execution of a block by a thread.
type BlockExecution struct {
	Thread arch.ThreadID
	// Number identifies the block; numbers begin at 0.
	Number int
	Block  *vex.Block
	Code   []byte
	// Machine has the values of the temporaries and the exit that was taken.
	Machine *vex.Machine
	// Summary is the function whose summary stands for this execution; then there are no
	// constraints.
	Summary string
}

// Access is a load or a store of a piece.
type Access struct {
	PC, Addr uint64
	Value    [2]uint64
	Size     int
	Store    bool
	// Branches is the number of branches, of the kinds that event.Stamp counts, since the
	// beginning of the piece.
	Branches uint32
}

// Code reads the code at an address into b and returns the number of bytes.
type Code func(space, addr uint64, b []byte) int

// Stats counts executed instructions and constraints.
type Stats struct {
	// Instructions were executed, of which Symbolic were in blocks that touched values that
	// depend on inputs.
	Instructions, Symbolic uint64
	// Constraints counts the constraints of each kind, Fixed those of kind Fixed by reason.
	Constraints [kindCount]uint64
	Fixed       map[string]uint64
}

// Tracer receives the executed blocks and the constraints.
type Tracer interface {
	// TraceBlock is called for each executed block, before its constraints. The next block
	// overwrites the value of e.
	TraceBlock(e *BlockExecution)
	// TraceConstraint is called for each constraint, without its expression, which may be a
	// constant. The next constraint overwrites the value of c.
	TraceConstraint(c *Constraint)
}

// Executor executes a run. It is for one goroutine.
type Executor struct {
	Pool *symbolic.Pool
	// CPUID is the result of the instruction.
	CPUID func(leaf, subleaf uint32) [4]uint32
	// OnConstraint, if set, receives each constraint with its expression, except constant
	// ones. The next constraint overwrites the argument.
	OnConstraint func(*Constraint)
	// OnAddress, if set, is called for each address of a load or store that is an expression, with the recorded address and
	// the number of bytes. If it returns true, there is no constraint that the address is the recorded one.
	OnAddress func(e *symbolic.Expr, recorded uint64, size int) bool
	// Tracer, if set, receives the executed blocks.
	Tracer Tracer
	// FreshSymbol, if set, is called for each load: a non-empty name makes the loaded value
	// a symbol, whatever memory holds (H3 section 3.2).
	FreshSymbol func(l *Access, id arch.ThreadID) string
	// ConstantRange, if set, returns the bounds of constant memory around an address that
	// other runs have, too; two zeros: memory there may change.
	ConstantRange func(space, addr uint64) (low, high uint64)
	// Tables has a load from constant memory, at an address that one byte of an input decides, be a function of this byte.
	// Otherwise the address has the constraint that it is the recorded one, or one with the same bytes.
	Tables bool
	// NoInputMarks: bytes that a mark of heddle.h calls an input are no symbols of their own.
	NoInputMarks bool
	// OnMark, if set, receives the marks of heddle.h.
	OnMark func(m *Mark)
	// Check has every expression compared with the recorded value: a difference is an error
	// of Run.
	Check bool
	// MaxTerms is the number of terms after which inputs become untracked (PinUntracked); 0: no limit.
	MaxTerms int
	Stats    Stats

	readCode     Code
	bytes        [maxBlockBytes]byte // buffer of readCode
	threads      map[arch.ThreadID]*thread
	memory       memoryShadow
	blocks       map[blockKey]*block
	latest       [1 << 13]*block // some of the blocks executed last
	terms        *termStore
	expressions  map[Term]*symbolic.Expr
	lookups      map[lookupKey]*lookup
	pendingTerms []Term
	// inputs are the symbols of inputs, names other symbols; evaluator knows their values.
	inputs    []*input
	inputsOf  map[string][]int
	names     []namedSymbol
	nameOf    map[string]int
	evaluator *symbolic.Evaluator
	summaries map[location]Summary
	// resolvers are the functions that choose a function with a summary.
	resolvers map[location]Summary
	// functions counts changes of both maps.
	functions int
	derived   map[string]*Derived
	marks     map[arch.ThreadID]int // of inputs
	opaque    map[string]bool       // inputs and symbols of opaque functions
	calls     int                   // of opaque functions
	// inputNumbers numbers the inputs that may be pinned, pinned are those that are, and constants marks the terms
	// that depend on these alone. At termLimit terms more inputs become untracked, and then half of termsLeft are
	// allowed. untrackedNames are the symbols of untracked values.
	inputNumbers   map[string]uint8
	untracked      inputSet
	untrackedNames map[string]inputSet
	pinned         inputSet
	constants      []uint64
	termLimit      int
	termsLeft      int
	count          int // of blocks
	executed       BlockExecution
	// constraint is the latest.
	constraint Constraint
}

// New makes an Executor that reads code with a function.
func New(code Code) *Executor {
	x := &Executor{
		Pool: symbolic.NewPool(), readCode: code, threads: map[arch.ThreadID]*thread{}, blocks: map[blockKey]*block{},
		terms: newTerms(), expressions: map[Term]*symbolic.Expr{}, inputsOf: map[string][]int{}, nameOf: map[string]int{},
		summaries: map[location]Summary{}, resolvers: map[location]Summary{}, derived: map[string]*Derived{}, marks: map[arch.ThreadID]int{},
		opaque: map[string]bool{}, inputNumbers: map[string]uint8{}, untrackedNames: map[string]inputSet{},
	}
	x.memory = newMemoryShadow()
	x.Stats.Fixed = map[string]uint64{}
	x.evaluator = symbolic.NewEvaluator(x.Recorded)
	return x
}

// Overwrite records that the kernel wrote n bytes that depend on no input.
func (x *Executor) Overwrite(space, addr uint64, n int) { x.memory.storeTerm(space, addr, n, 0) }

// Fork copies an address space to a new one.
func (x *Executor) Fork(from, to uint64) {
	for k, pg := range x.memory.pages {
		if k.space == from {
			c := *pg
			x.memory.setPage(location{to, k.number}, &c)
		}
	}
	for k, s := range x.summaries {
		if k.space == from {
			x.summaries[location{to, k.number}] = s
		}
	}
	for k, s := range x.resolvers {
		if k.space == from {
			x.resolvers[location{to, k.number}] = s
		}
	}
	x.functions++
}

// Resume sets the registers of a thread. Registers that changed no longer depend on inputs.
func (x *Executor) Resume(id arch.ThreadID, space uint64, s *vex.State) {
	t := x.threads[id]
	if t == nil {
		t = &thread{x: x, id: id}
		t.machine.Memory, t.machine.CPUID, t.machine.TSC, t.machine.MXCSR = t, x.CPUID, t.readClock, 0x1f80
		t.machine.State = *s // all of it: other parts than the visible ones are not zero either
		x.threads[id] = t
	}
	t.space = space
	t.setRegisters(s)
}

// Syscall fixes the number and the arguments of a thread's system call to the recorded
// ones: the kernel's effects depend on them.
func (x *Executor) Syscall(id arch.ThreadID) {
	t := x.threads[id]
	if t == nil || t.registers.noneDepends() {
		return
	}
	registers := []int{0, 7, 6, 2, 10, 8, 9} // rax rdi rsi rdx r10 r8 r9
	for _, r := range registers[:1+linux.Arity(t.machine.State.Word(vex.OffsetRAX))] {
		v, e := t.registerTerm(vex.OffsetRAX+8*r, 8)
		t.fixOutsideBlock(v, e, Call, "")
	}
}

// Signal fixes all registers of a thread that starts a signal handler: the kernel stores
// them in memory.
func (x *Executor) Signal(id arch.ThreadID) {
	t := x.threads[id]
	if t == nil || t.registers.noneDepends() {
		return
	}
	for at := 0; at < len(t.machine.State); at += 8 {
		v, e := t.registerTerm(at, min(8, len(t.machine.State)-at))
		t.fixOutsideBlock(v, e, Fixed, "registers at a signal")
	}
}

// Exit forgets a thread.
func (x *Executor) Exit(id arch.ThreadID) { delete(x.threads, id) }

// Terms is the number of terms so far.
func (x *Executor) Terms() int { return x.terms.nodes.Len() }

// addConstraint adds a constraint.
func (x *Executor) addConstraint(c *Constraint) {
	x.Stats.Constraints[c.Kind]++
	if c.Kind == Fixed {
		x.Stats.Fixed[c.Reason]++
	}
	if x.Tracer != nil {
		x.Tracer.TraceConstraint(c)
	}
	if x.OnConstraint == nil {
		return
	}
	if c.Expr = x.Express(c.Term); !c.Expr.IsConst() {
		x.OnConstraint(c)
	}
}

// MovePages moves n bytes, whole pages, inside an address space.
func (x *Executor) MovePages(space, from, to uint64, n int) {
	if from == to {
		return
	}
	for at := uint64(0); at < uint64(n); at += pageSize {
		old, moved := location{space, (from + at) / pageSize}, location{space, (to + at) / pageSize}
		pg := x.memory.pages[old]
		x.memory.setPage(old, nil)
		x.memory.setPage(moved, pg)
	}
}
