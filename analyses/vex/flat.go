package vex

// Flat is a block prepared for execution: a step for each statement, with numbered
// operands: first the temporaries, by their numbers, then None, then the constants.
type Flat struct {
	Steps []Step
	// Constants are the operands from the number None on; None itself is the first and is
	// 0.
	Constants []Value
	// Bits are the sizes of all operands.
	Bits []uint8
	// None stands for an operand that a step does not have.
	None int32
	// Next is the operand with the successor of the block if no side exit is taken.
	Next int32
}

// StepKind is the kind of a step, which determines the meaning of its fields.
type StepKind uint8

// Kinds of steps.
const (
	// StepOther is a statement without a step of its own: see the block's statement.
	StepOther StepKind = iota
	// StepMark begins the instruction at address Bits; with Size 0 it is no instruction.
	StepMark
	// StepGet and StepPut read and write Size bytes of the state at Offset: into To, from
	// A.
	StepGet
	StepPut
	// StepCopy copies A to To.
	StepCopy
	// StepLoad and StepStore load and store Size bytes at the address A: into To, from B.
	StepLoad
	StepStore
	// StepExit leaves the block if A is 1.
	StepExit
	// StepChoose sets To to B if A is 1, and to C otherwise.
	StepChoose
	// StepOperation computes Op of A, B and C.
	StepOperation
)

// Step is a statement.
type Step struct {
	Kind    StepKind
	code    stepCode
	Size    uint8
	shift   uint8
	Op      Op
	To      int32
	A, B, C int32
	Offset  int32
	Bits    uint64 // the address of a mark, the mask of an operation
}

// Flat returns the block prepared for execution. The block must not be changed any more.
func (b *Block) Flat() *Flat {
	f := b.flat.Load()
	if f == nil {
		f = layOut(b)
		b.flat.Store(f)
	}
	return f
}

// flattener prepares a block for execution.
type flattener struct {
	*Flat
	block *Block
	ops   []opFunc
	quick []quickOp
	fits  bool // all operands of the statement are temporaries and constants
}

func layOut(b *Block) *Flat {
	none, room := int32(len(b.Types)), int32(len(b.Stmts)/2)
	f := &flattener{
		Flat: &Flat{
			Steps: make([]Step, len(b.Stmts)), Constants: make([]Value, 1, 2+room), Bits: make([]uint8, none+1, none+2+room), None: none,
		},
		block: b, ops: operationFuncs(), quick: quickOps(),
	}
	for i, t := range b.Types {
		f.Bits[i] = uint8(min(t.Bits(), 255)) // V256 is in no known operation
	}
	for i, s := range b.Stmts {
		f.fits = true
		if step := f.makeStep(s); f.fits {
			step.setCode()
			f.Steps[i] = step
		}
	}
	f.Next = f.operandNumber(b.Next)
	return f.Flat
}

// operandNumber returns the number of an operand.
func (f *flattener) operandNumber(e Expr) int32 {
	switch e := e.(type) {
	case *Read:
		return int32(e.Temp)
	case *Const:
		v := wordValue(e.Bits)
		if e.Type == V128 {
			v = expandByteMask(e.Bits)
		}
		f.Constants = append(f.Constants, v)
		f.Bits = append(f.Bits, uint8(e.Type.Bits()))
		return f.None + int32(len(f.Constants)) - 1
	}
	f.fits = false
	return f.None
}

// makeStep makes the step of a statement, or StepOther.
func (f *flattener) makeStep(s Stmt) Step {
	none := f.None
	switch s := s.(type) {
	case *Mark:
		return Step{Kind: StepMark, Size: uint8(s.Len), Bits: s.Addr, A: none, B: none, C: none}
	case *Put:
		return Step{Kind: StepPut, Size: uint8(f.block.TypeOf(s.Data).Bytes()), Offset: int32(s.Offset), A: f.operandNumber(s.Data), B: none, C: none}
	case *Store:
		if s.Guard == nil {
			return Step{Kind: StepStore, Size: uint8(f.block.TypeOf(s.Data).Bytes()), A: f.operandNumber(s.Addr), B: f.operandNumber(s.Data), C: none}
		}
	case *Exit:
		return Step{Kind: StepExit, A: f.operandNumber(s.Guard), B: none, C: none}
	case *Assign:
		step := f.makeAssignStep(s.Data)
		step.To = int32(s.Temp)
		return step
	}
	return Step{}
}

func (f *flattener) makeAssignStep(e Expr) Step {
	none := f.None
	switch e := e.(type) {
	case *Read, *Const:
		return Step{Kind: StepCopy, A: f.operandNumber(e), B: none, C: none}
	case *Get:
		return Step{Kind: StepGet, Size: uint8(e.Type.Bytes()), Offset: int32(e.Offset), A: none, B: none, C: none}
	case *Load:
		return Step{Kind: StepLoad, Size: uint8(e.Type.Bytes()), A: f.operandNumber(e.Addr), B: none, C: none}
	case *ITE:
		return Step{Kind: StepChoose, A: f.operandNumber(e.Cond), B: f.operandNumber(e.Then), C: f.operandNumber(e.Else)}
	case *Operation:
		return f.makeOperationStep(e)
	}
	return Step{}
}

func (f *flattener) makeOperationStep(e *Operation) Step {
	if f.ops[e.Op] == nil || len(e.Args) > 3 {
		return Step{}
	}
	args := [3]int32{f.None, f.None, f.None}
	for i, a := range e.Args {
		args[i] = f.operandNumber(a)
	}
	q := f.quick[e.Op]
	return Step{Kind: StepOperation, code: q.code, shift: q.shift, Op: e.Op, A: args[0], B: args[1], C: args[2], Bits: q.mask}
}
