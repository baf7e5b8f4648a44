package vex

import "sync/atomic"

// Type is the type of a value.
type Type uint8

// The types, in libVEX's order (IRType).
const (
	Invalid Type = iota
	I1
	I8
	I16
	I32
	I64
	I128
	F16
	F32
	F64
	D32
	D64
	D128
	F128
	V128
	V256
)

var typeNames = [...]string{
	"invalid", "I1", "I8", "I16", "I32", "I64", "I128", "F16", "F32", "F64", "D32", "D64", "D128", "F128", "V128", "V256",
}

var typeBits = [...]int{0, 1, 8, 16, 32, 64, 128, 16, 32, 64, 32, 64, 128, 128, 128, 256}

func (t Type) String() string { return typeNames[t] }

// Bits is the size of a value of the type.
func (t Type) Bits() int { return typeBits[t] }

// Bytes is the size of a value of the type in memory or in the guest state.
func (t Type) Bytes() int { return (t.Bits() + 7) / 8 }

// Op is an operation on values (IROp).
type Op uint16

// Temp is a temporary of a block, a number from 0.
type Temp int32

// NoTemp stands for a result that is not kept.
const NoTemp Temp = -1

// JumpKind is the kind of the jump at a block's end.
type JumpKind uint8

// Jump kinds, in libVEX's order (IRJumpKind).
const (
	JumpInvalid JumpKind = iota
	JumpBoring
	JumpCall
	JumpRet
	JumpClientReq
	JumpYield
	JumpEmWarn
	JumpEmFail
	JumpNoDecode
	JumpMapFail
	JumpInvalICache
	JumpFlushDCache
	JumpNoRedir
	JumpSigILL
	JumpSigTRAP
	JumpSigSEGV
	JumpSigBUS
	JumpSigFPE
	JumpSigFPEIntDiv
	JumpSigFPEIntOvf
	JumpSyscall
	JumpInt32
	JumpInt128
	JumpInt129
	JumpInt130
	JumpInt145
	JumpInt210
	JumpSysenter
)

var jumpNames = [...]string{
	"Invalid", "Boring", "Call", "Ret", "ClientReq", "Yield", "EmWarn", "EmFail", "NoDecode", "MapFail", "InvalICache",
	"FlushDCache", "NoRedir", "SigILL", "SigTRAP", "SigSEGV", "SigBUS", "SigFPE", "SigFPE_IntDiv", "SigFPE_IntOvf",
	"Sys_syscall", "Sys_int32", "Sys_int128", "Sys_int129", "Sys_int130", "Sys_int145", "Sys_int210", "Sys_sysenter",
}

func (k JumpKind) String() string { return jumpNames[k] }

// Block is a lifted piece of code with one entry.
type Block struct {
	// Addr is the address of the code, and Size the number of bytes that were lifted.
	Addr uint64
	Size int
	// Types are those of the temporaries.
	Types []Type
	Stmts []Stmt
	// Next is the successor of the block if no side exit is taken.
	Next Expr
	Jump JumpKind

	flat atomic.Pointer[Flat]
}

// Stmt is one of *Mark, *Put, *PutI, *Assign, *Store, *LoadG, *CAS, *Dirty, *Fence and
// *Exit.
type Stmt interface {
	isStatement()
	String() string
}

// Expr is one of *Get, *GetI, *Read, *Operation, *Load, *Const, *ITE, *Call and the two
// special arguments of helpers, *StatePointer and *VectorResult.
type Expr interface {
	isExpression()
	String() string
}

// Array is a part of the guest state that is indexed in a circle, such as the x87
// registers.
type Array struct {
	Base  int
	Elem  Type
	Count int
}

// Mark begins the statements of an instruction.
type Mark struct {
	Addr uint64
	Len  int
}

// Put writes Data into the guest state.
type Put struct {
	Offset int
	Data   Expr
}

// PutI writes Data into the element Index + Bias of an array.
type PutI struct {
	Array Array
	Index Expr
	Bias  int
	Data  Expr
}

// Assign gives a temporary its value.
type Assign struct {
	Temp Temp
	Data Expr
}

// Store writes Data to memory, if Guard, which may be nil, is 1.
type Store struct {
	Guard      Expr
	Addr, Data Expr
}

// LoadCvt is the widening of a LoadG (IRLoadGOp).
type LoadCvt uint8

// Conversions of LoadG, in libVEX's order.
const (
	LoadInvalid LoadCvt = iota
	LoadV128
	Load64
	Load32
	Load16Uto32
	Load16Sto32
	Load8Uto32
	Load8Sto32
)

// LoadG loads and converts if Guard is 1, otherwise its result is Alt.
type LoadG struct {
	Temp             Temp
	Cvt              LoadCvt
	Guard, Addr, Alt Expr
}

// CAS compares the memory at Addr with the expected value and, if they are equal, replaces
// it by Data, atomically. The Old temporaries receive the previous value. The Hi parts, at
// higher addresses, exist for a double compare-and-swap only.
type CAS struct {
	OldHi, OldLo           Temp
	Addr                   Expr
	ExpectedHi, ExpectedLo Expr
	DataHi, DataLo         Expr
}

// Effect is the effect of a Dirty on a piece of state or memory.
type Effect uint8

// Effects, in libVEX's order (IREffect).
const (
	EffectNone Effect = iota
	EffectRead
	EffectWrite
	EffectModify
)

// StateEffect is an effect on the guest state: on [Offset, Offset+Size), and on Repeats
// more ranges of the same size, RepeatLen bytes apart.
type StateEffect struct {
	Effect             Effect
	Offset, Size       int
	Repeats, RepeatLen int
}

// Dirty calls a helper with side effects, if Guard is 1.
type Dirty struct {
	Temp   Temp // of the result, or NoTemp
	Guard  Expr
	Callee string
	Args   []Expr
	// Effect is on MemSize bytes of memory at MemAddr.
	Effect  Effect
	MemAddr Expr
	MemSize int
	State   []StateEffect
}

// Fence is a memory fence.
type Fence struct{}

// Exit leaves the block for Dst if Guard is 1.
type Exit struct {
	Guard Expr
	Dst   uint64
	Jump  JumpKind
}

// Get reads the guest state.
type Get struct {
	Offset int
	Type   Type
}

// GetI reads the element Index + Bias of an array.
type GetI struct {
	Array Array
	Index Expr
	Bias  int
}

// Read is the value of a temporary.
type Read struct{ Temp Temp }

// Operation applies an operation to arguments.
type Operation struct {
	Op   Op
	Args []Expr
}

// Load reads memory.
type Load struct {
	Type Type
	Addr Expr
}

// Const is a constant: the bits of a number of up to 64 bits; for V128 and V256 a bit for
// each byte, which is all ones or all zeros.
type Const struct {
	Type Type
	Bits uint64
}

// ITE is Then if Cond is 1, otherwise Else.
type ITE struct{ Cond, Then, Else Expr }

// Call calls a helper without side effects.
type Call struct {
	Type   Type
	Callee string
	Args   []Expr
}

// StatePointer stands for the guest state as the argument of a helper.
type StatePointer struct{}

// VectorResult stands for the location of a helper's vector result.
type VectorResult struct{}

func (*Mark) isStatement()   {}
func (*Put) isStatement()    {}
func (*PutI) isStatement()   {}
func (*Assign) isStatement() {}
func (*Store) isStatement()  {}
func (*LoadG) isStatement()  {}
func (*CAS) isStatement()    {}
func (*Dirty) isStatement()  {}
func (*Fence) isStatement()  {}
func (*Exit) isStatement()   {}

func (*Get) isExpression()          {}
func (*GetI) isExpression()         {}
func (*Read) isExpression()         {}
func (*Operation) isExpression()    {}
func (*Load) isExpression()         {}
func (*Const) isExpression()        {}
func (*ITE) isExpression()          {}
func (*Call) isExpression()         {}
func (*StatePointer) isExpression() {}
func (*VectorResult) isExpression() {}
