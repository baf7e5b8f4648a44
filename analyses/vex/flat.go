package vex

// Flat is a block laid out to be executed: a step for each statement, whose operands
// are numbered: first the temporaries, by their numbers, then None, then the constants.
type Flat struct {
	Steps []Step
	// Constants are the operands from the number None on, None itself among them:
	// it is 0.
	Constants []Value
	// Bits are the sizes of all operands.
	Bits []uint8
	// None stands for an operand that a step does not have.
	None int32
	// Next is where the block goes when no side exit is taken.
	Next int32
}

// StepKind says what a step does, and what its fields mean.
type StepKind uint8

// Kinds of steps.
const (
	// StepOther is a statement that has no step of its own: it is to be taken from
	// the block.
	StepOther StepKind = iota
	// StepMark begins the instruction at address Bits; of size 0 it is none.
	StepMark
	// StepGet and StepPut read and write Size bytes of the state at Offset: into To,
	// from A.
	StepGet
	StepPut
	// StepCopy gives To what A has.
	StepCopy
	// StepLoad and StepStore load and store Size bytes at the address A: into To, from
	// B.
	StepLoad
	StepStore
	// StepExit leaves the block if A is 1.
	StepExit
	// StepChoose gives To what B has if A is 1, and what C has otherwise.
	StepChoose
	// StepOperation computes Op of A, B and C.
	StepOperation
)

// Step is a statement.
type Step struct {
	Kind    StepKind
	code    code
	Size    uint8
	shift   uint8
	Op      Op
	To      int32
	A, B, C int32
	Offset  int32
	Bits    uint64 // of a mark the address, of an operation a mask
}

// Flat is the block laid out. It must not be changed any more.
func (b *Block) Flat() *Flat {
	f := b.flat.Load()
	if f == nil {
		f = flatten(b)
		b.flat.Store(f)
	}
	return f
}

// flattener lays out a block.
type flattener struct {
	*Flat
	block *Block
	ops   []opFunc
	quick []quickOp
	fits  bool // all operands of the statement are temporaries and constants
}

func flatten(b *Block) *Flat {
	none, room := int32(len(b.Types)), int32(len(b.Stmts)/2)
	f := &flattener{
		Flat: &Flat{
			Steps: make([]Step, len(b.Stmts)), Constants: make([]Value, 1, 2+room), Bits: make([]uint8, none+1, none+2+room), None: none,
		},
		block: b, ops: ops(), quick: quickOps(),
	}
	for i, t := range b.Types {
		f.Bits[i] = uint8(min(t.Bits(), 255)) // V256 is in no operation that is known
	}
	for i, s := range b.Stmts {
		f.fits = true
		if step := f.step(s); f.fits {
			step.encode()
			f.Steps[i] = step
		}
	}
	f.Next = f.operand(b.Next)
	return f.Flat
}

// operand is the number of an operand.
func (f *flattener) operand(e Expr) int32 {
	switch e := e.(type) {
	case *Read:
		return int32(e.Temp)
	case *Const:
		v := value(e.Bits)
		if e.Type == V128 {
			v = byteMask(e.Bits)
		}
		f.Constants = append(f.Constants, v)
		f.Bits = append(f.Bits, uint8(e.Type.Bits()))
		return f.None + int32(len(f.Constants)) - 1
	}
	f.fits = false
	return f.None
}

// step is a statement's, or StepOther.
func (f *flattener) step(s Stmt) Step {
	none := f.None
	switch s := s.(type) {
	case *Mark:
		return Step{Kind: StepMark, Size: uint8(s.Len), Bits: s.Addr, A: none, B: none, C: none}
	case *Put:
		return Step{Kind: StepPut, Size: uint8(f.block.TypeOf(s.Data).Bytes()), Offset: int32(s.Offset), A: f.operand(s.Data), B: none, C: none}
	case *Store:
		if s.Guard == nil {
			return Step{Kind: StepStore, Size: uint8(f.block.TypeOf(s.Data).Bytes()), A: f.operand(s.Addr), B: f.operand(s.Data), C: none}
		}
	case *Exit:
		return Step{Kind: StepExit, A: f.operand(s.Guard), B: none, C: none}
	case *Assign:
		step := f.assigned(s.Data)
		step.To = int32(s.Temp)
		return step
	}
	return Step{}
}

func (f *flattener) assigned(e Expr) Step {
	none := f.None
	switch e := e.(type) {
	case *Read, *Const:
		return Step{Kind: StepCopy, A: f.operand(e), B: none, C: none}
	case *Get:
		return Step{Kind: StepGet, Size: uint8(e.Type.Bytes()), Offset: int32(e.Offset), A: none, B: none, C: none}
	case *Load:
		return Step{Kind: StepLoad, Size: uint8(e.Type.Bytes()), A: f.operand(e.Addr), B: none, C: none}
	case *ITE:
		return Step{Kind: StepChoose, A: f.operand(e.Cond), B: f.operand(e.Then), C: f.operand(e.Else)}
	case *Operation:
		return f.operation(e)
	}
	return Step{}
}

func (f *flattener) operation(e *Operation) Step {
	if f.ops[e.Op] == nil || len(e.Args) > 3 {
		return Step{}
	}
	args := [3]int32{f.None, f.None, f.None}
	for i, a := range e.Args {
		args[i] = f.operand(a)
	}
	q := f.quick[e.Op]
	return Step{Kind: StepOperation, code: q.code, shift: q.shift, Op: e.Op, A: args[0], B: args[1], C: args[2], Bits: q.mask}
}
