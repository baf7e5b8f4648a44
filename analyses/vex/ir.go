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

// JumpKind says what is special about the jump at a block's end.
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
	// Addr is where the code is, and Size how many of its bytes were lifted.
	Addr uint64
	Size int
	// Types are those of the temporaries.
	Types []Type
	Stmts []Stmt
	// Next is where the block goes when no side exit is taken.
	Next Expr
	Jump JumpKind

	flat atomic.Pointer[Flat]
}

// Stmt is one of *Mark, *Put, *PutI, *Assign, *Store, *LoadG, *CAS, *Dirty,
// *Fence and *Exit.
type Stmt interface {
	stmt()
	String() string
}

// Expr is one of *Get, *GetI, *Read, *Operation, *Load, *Const, *ITE, *Call and
// the two arguments of helpers, *StatePointer and *VectorResult.
type Expr interface {
	expr()
	String() string
}

// Array is a part of the guest state that is indexed in a circle, such as the
// x87 registers.
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

// LoadCvt is how LoadG widens what it loads (IRLoadGOp).
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

// LoadG loads, converted, if Guard is 1, and takes Alt otherwise.
type LoadG struct {
	Temp             Temp
	Cvt              LoadCvt
	Guard, Addr, Alt Expr
}

// CAS compares the memory at Addr with what is expected and, if equal, replaces
// it by Data, atomically. The Old temporaries get what was there. The Hi parts,
// of higher addresses, are there for a double compare-and-swap alone.
type CAS struct {
	OldHi, OldLo           Temp
	Addr                   Expr
	ExpectedHi, ExpectedLo Expr
	DataHi, DataLo         Expr
}

// Effect is what a Dirty does to a piece of state or memory.
type Effect uint8

// Effects, in libVEX's order (IREffect).
const (
	EffectNone Effect = iota
	EffectRead
	EffectWrite
	EffectModify
)

// StateEffect is an effect on the guest state: on [Offset, Offset+Size), and,
// Repeats times, on the same RepeatLen bytes further on.
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

// Operation computes.
type Operation struct {
	Op   Op
	Args []Expr
}

// Load reads memory.
type Load struct {
	Type Type
	Addr Expr
}

// Const is a constant: the bits of a number of up to 64 bits; of V128 and V256
// a bit for each byte, which is all ones or all zeros.
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

// VectorResult stands for where a helper puts a result that is a vector.
type VectorResult struct{}

func (*Mark) stmt()   {}
func (*Put) stmt()    {}
func (*PutI) stmt()   {}
func (*Assign) stmt() {}
func (*Store) stmt()  {}
func (*LoadG) stmt()  {}
func (*CAS) stmt()    {}
func (*Dirty) stmt()  {}
func (*Fence) stmt()  {}
func (*Exit) stmt()   {}

func (*Get) expr()          {}
func (*GetI) expr()         {}
func (*Read) expr()         {}
func (*Operation) expr()    {}
func (*Load) expr()         {}
func (*Const) expr()        {}
func (*ITE) expr()          {}
func (*Call) expr()         {}
func (*StatePointer) expr() {}
func (*VectorResult) expr() {}
