package symbolic

import "fmt"

// Op is an operation of expressions.
type Op uint8

// The operations. Operands are A, B and C; those of arithmetic, bitwise operations and
// comparisons have the same size. A truth has one bit.
const (
	// Const is the number in Value.
	Const Op = iota
	// Symbol is an unknown: Name.
	Symbol
	// Not is the complement.
	Not
	// Extract is Bits bits of A, from bit Low.
	Extract
	// ZeroExt and SignExt widen A.
	ZeroExt
	SignExt
	// Concat is A above B.
	Concat
	And
	Or
	Xor
	Add
	Sub
	Mul
	// UDiv, URem, SDiv and SRem divide as SMT-LIB defines, unsigned and signed.
	UDiv
	URem
	SDiv
	SRem
	// Shl, LShr and AShr shift A by B.
	Shl
	LShr
	AShr
	Eq
	// ULT and ULE compare unsigned numbers, SLT and SLE signed ones.
	ULT
	ULE
	SLT
	SLE
	// Ite is B if A is 1, otherwise C.
	Ite
	// Clz and Ctz count zeros from the top and from the bottom.
	Clz
	Ctz
	// FAdd to FSqrt compute on IEEE 754 numbers of 32 or 64 bits, by x86's rules for NaN.
	// FAdd to FDiv have a rounding mode, Mode.
	FAdd
	FSub
	FMul
	FDiv
	FSqrt
	// FEq, FLT, FLE and FUnordered compare.
	FEq
	FLT
	FLE
	FUnordered
	// FToF converts between the sizes, FToInt to a signed number, IntToF from one, FRound
	// to an integral number; all have a rounding mode.
	FToF
	FToInt
	IntToF
	FRound
	numOps
)

var opNames = [numOps]string{
	"const", "symbol", "not", "extract", "zext", "sext", "concat", "and", "or", "xor", "add", "sub", "mul", "udiv", "urem",
	"sdiv", "srem", "shl", "lshr", "ashr", "eq", "ult", "ule", "slt", "sle", "ite", "clz", "ctz", "fadd", "fsub", "fmul",
	"fdiv", "fsqrt", "feq", "flt", "fle", "funordered", "ftof", "ftoint", "inttof", "fround",
}

func (o Op) String() string { return opNames[o] }

// Mode is a rounding mode: the numbering of x86 and of libVEX.
type Mode uint8

// Rounding modes.
const (
	Nearest Mode = iota
	Down
	Up
	TowardsZero
)

// Expr is an expression. It never changes.
type Expr struct {
	Op Op
	// Mode is the rounding mode of an operation that has one.
	Mode Mode
	// Bits is the size, 1 to 128.
	Bits int
	// Low is the lowest bit of an Extract.
	Low     int
	A, B, C *Expr
	// Value is the number of a Const, Name the name of a Symbol.
	Value Value
	Name  string

	id int32
	// size counts the nodes of the expression as a tree, up to a limit.
	size int32
}

// Size is the number of operations and leaves, with common ones counted each time, up to a
// billion.
func (e *Expr) Size() int { return int(e.size) }

// IsConst reports whether e is a constant.
func (e *Expr) IsConst() bool { return e.Op == Const }

func (e *Expr) isWord(x uint64) bool { return e.Op == Const && e.Value == Value{Lo: x} }

func (e *Expr) isOnes() bool { return e.Op == Const && e.Value == allOnes(e.Bits) }

// eachOperand calls f for each operand.
func (e *Expr) eachOperand(f func(*Expr)) {
	for _, a := range [...]*Expr{e.A, e.B, e.C} {
		if a != nil {
			f(a)
		}
	}
}

// internKey identifies an expression in a pool.
type internKey struct {
	op      Op
	mode    Mode
	bits    uint8
	low     uint8
	a, b, c int32
	value   Value
	name    string
}

// Pool holds expressions, each once. It is for one goroutine.
type Pool struct {
	interned map[internKey]*Expr
	count    int32
	// unsimplified turns simplification off, except for operations on constants.
	unsimplified bool
}

// NewPool makes an empty pool.
func NewPool() *Pool { return &Pool{interned: map[internKey]*Expr{}} }

// Len is the number of expressions.
func (p *Pool) Len() int { return int(p.count) }

const maxSize = 1_000_000_000

func exprID(e *Expr) int32 {
	if e == nil {
		return 0
	}
	return e.id
}

// intern returns the pool's expression that is equal to e.
func (p *Pool) intern(e Expr) *Expr {
	k := internKey{e.Op, e.Mode, uint8(e.Bits - 1), uint8(e.Low), exprID(e.A), exprID(e.B), exprID(e.C), e.Value, e.Name}
	if old := p.interned[k]; old != nil {
		return old
	}
	if e.Bits < 1 || e.Bits > 128 {
		panic(fmt.Sprintf("bug: %v of %d bits", e.Op, e.Bits))
	}
	p.count++
	e.id = p.count
	size := int64(1)
	e.eachOperand(func(a *Expr) { size += int64(a.size) })
	e.size = int32(min(size, maxSize))
	p.interned[k] = &e
	return &e
}

// Const is a number of a size; higher bits are cut off.
func (p *Pool) Const(v Value, bits int) *Expr {
	return p.intern(Expr{Op: Const, Bits: bits, Value: truncate(v, bits)})
}

// Word is a Const of up to 64 bits.
func (p *Pool) Word(x uint64, bits int) *Expr { return p.Const(wordValue(x), bits) }

// Bool is 1 or 0.
func (p *Pool) Bool(b bool) *Expr { return p.Const(boolValue(b), 1) }

// Symbol is the unknown with a name. All symbols of one name have the same size.
func (p *Pool) Symbol(name string, bits int) *Expr {
	return p.intern(Expr{Op: Symbol, Bits: bits, Name: name})
}

// makeUnary and makeBinary make an operation, or its value if the operands are constants.
func (p *Pool) makeUnary(e Expr) *Expr {
	if e.A.Op == Const {
		return p.Const(computeOperation(&e, e.A.Value, Value{}, Value{}), e.Bits)
	}
	return p.intern(e)
}

func (p *Pool) makeBinary(e Expr) *Expr {
	if e.A.Op == Const && e.B.Op == Const {
		return p.Const(computeOperation(&e, e.A.Value, e.B.Value, Value{}), e.Bits)
	}
	return p.intern(e)
}
