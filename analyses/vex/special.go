package vex

import (
	"bytes"
	"slices"
)

// Some instructions are unknown to libVEX, or it treats them differently from the
// processor: each becomes a block of its own, made here.
//
//   - BT, BTS, BTR and BTC of two registers, which it computes in memory below the stack;
//   - PUSHF, which lacks the flags that are always set;
//   - CMPS without a prefix, and XLAT;
//   - STMXCSR, since exception flags are not in the state;
//   - marks of heddle.h, so that analyses can handle them.

// instruction is the parts of an instruction that determine its block.
type instruction struct {
	code   []byte // from the opcode on
	rex    byte
	size   int // of an operand that is no byte, in bytes
	addr   uint64
	length int
}

// splitPrefixes removes the prefixes of an instruction. Special instructions have no LOCK,
// REP or address size prefix.
func splitPrefixes(code []byte, addr uint64) instruction {
	in := instruction{size: 4, addr: addr, length: len(code)}
	for len(code) > 0 && code[0] == 0x66 {
		in.size = 2
		code = code[1:]
	}
	if len(code) > 0 && code[0]&0xf0 == 0x40 {
		in.rex = code[0]
		code = code[1:]
		if in.rex&8 != 0 {
			in.size = 8
		}
	}
	in.code = code
	return in
}

// specialMaker returns the function that makes an instruction's block; nil: libVEX makes
// it.
func specialMaker(in instruction) func(instruction) []Stmt {
	c := in.code
	switch {
	case len(c) >= 3 && c[0] == 0x0f && slices.Contains([]byte{0xa3, 0xab, 0xb3, 0xbb}, c[1]) && c[2]>>6 == 3:
		return (instruction).makeBitTest
	case len(c) >= 1 && (c[0] == 0xa6 || c[0] == 0xa7):
		return (instruction).makeCompareStrings
	case len(c) >= 1 && c[0] == 0xd7:
		return (instruction).makeTranslate
	}
	return nil
}

// isPushFlags reports whether an instruction is PUSHF.
func isPushFlags(in instruction) bool { return len(in.code) > 0 && in.code[0] == 0x9c }

// isStoreMXCSR reports whether an instruction is STMXCSR, which is a block of its own so
// that the exception flags can be given to the Machine.
func isStoreMXCSR(in instruction) bool {
	return len(in.code) > 2 && in.code[0] == 0x0f && in.code[1] == 0xae && in.code[2]>>3&7 == 3 && in.code[2]>>6 != 3
}

// markPrefix is the beginning of a mark of heddle.h: a NOP with an operand in memory, whose
// address identifies it as a mark and holds the kind.
var markPrefix = []byte{0x0f, 0x1f, 0x80}

// markSignature are the upper bytes of the address.
var markSignature = []byte{0x6c, 0x64, 0x68}

// IsMark reports whether code begins with a mark of heddle.h, whose fourth byte is its
// kind. A mark is a block of its own.
func IsMark(code []byte) bool {
	return len(code) >= 7 && bytes.Equal(code[:3], markPrefix) && bytes.Equal(code[4:7], markSignature)
}

// statementMaker makes the statements of an instruction; its temporaries have 64 bits.
type statementMaker struct{ stmts []Stmt }

// assignTemp gives a new temporary the value of an expression, whose operands are
// temporaries and constants, as in all of libVEX's code.
func (m *statementMaker) assignTemp(e Expr) Expr {
	t := Temp(0)
	for _, s := range m.stmts {
		if _, ok := s.(*Assign); ok {
			t++
		}
	}
	m.stmts = append(m.stmts, &Assign{Temp: t, Data: e})
	return &Read{Temp: t}
}

func (m *statementMaker) assignOperation(name string, args ...Expr) Expr {
	return m.assignTemp(&Operation{Op: opNumber(name), Args: args})
}

func (m *statementMaker) putState(offset int, e Expr) {
	m.stmts = append(m.stmts, &Put{Offset: offset, Data: e})
}

func constantWord(x uint64) Expr { return &Const{Type: I64, Bits: x} }

func readStateWord(offset int) Expr { return &Get{Offset: offset, Type: I64} }

// setFlagsThunk sets the operation and operands from which the flags are computed.
func (m *statementMaker) setFlagsThunk(op uint64, dep1, dep2 Expr) {
	m.putState(OffsetCCOp, constantWord(op))
	m.putState(OffsetCCDep1, dep1)
	m.putState(OffsetCCDep2, dep2)
	m.putState(OffsetCCNDep, constantWord(0))
}

// loadWidened loads a number, zero-extended to 64 bits.
func (m *statementMaker) loadWidened(addr Expr, size int) Expr {
	cvt, t := map[int]string{1: "8Uto64", 2: "16Uto64", 4: "32Uto64"}, map[int]Type{1: I8, 2: I16, 4: I32, 8: I64}[size]
	loaded := m.assignTemp(&Load{Type: t, Addr: addr})
	if size == 8 {
		return loaded
	}
	return m.assignTemp(&Operation{Op: opNumber(cvt[size]), Args: []Expr{loaded}})
}

func (in instruction) makeBitTest() []Stmt {
	m := &statementMaker{}
	base := OffsetRAX + 8*int(in.code[2]&7|in.rex&1<<3)
	index := OffsetRAX + 8*int(in.code[2]>>3&7|in.rex&4<<1)
	old := m.assignTemp(readStateWord(base))
	n := m.assignOperation("And64", m.assignTemp(readStateWord(index)), constantWord(uint64(8*in.size-1)))
	shift := m.assignTemp(&Operation{Op: opNumber("64to8"), Args: []Expr{n}})
	bit := m.assignOperation("And64", m.assignOperation("Shr64", old, shift), constantWord(1))
	flags := m.assignTemp(&Call{Type: I64, Callee: "amd64g_calculate_rflags_all", Args: []Expr{
		m.assignTemp(readStateWord(OffsetCCOp)), m.assignTemp(readStateWord(OffsetCCDep1)), m.assignTemp(readStateWord(OffsetCCDep2)), m.assignTemp(readStateWord(OffsetCCNDep)),
	}})
	flags = m.assignOperation("Or64", m.assignOperation("And64", flags, constantWord(^uint64(flagC))), bit)
	m.setFlagsThunk(ccCopy, flags, constantWord(0))
	one := m.assignOperation("Shl64", constantWord(1), shift)
	switch in.code[1] {
	case 0xab:
		old = m.assignOperation("Or64", old, one)
	case 0xb3:
		old = m.assignOperation("And64", old, m.assignOperation("Not64", one))
	case 0xbb:
		old = m.assignOperation("Xor64", old, one)
	default:
		return m.stmts
	}
	// Operations on 32 bits clear the upper halves of registers; operations on 16 bits keep
	// them, and the bit is one of the lower 16.
	if in.size == 4 {
		old = m.assignOperation("And64", old, constantWord(0xffffffff))
	}
	m.putState(base, old)
	return m.stmts
}

func (in instruction) makeCompareStrings() []Stmt {
	size, op := in.size, uint64(ccSub)
	if in.code[0] == 0xa6 {
		size = 1
	}
	for n := 1; n < size; n *= 2 {
		op++
	}
	const rsi, rdi = OffsetRAX + 8*6, OffsetRAX + 8*7
	m := &statementMaker{}
	from, to := m.assignTemp(readStateWord(rsi)), m.assignTemp(readStateWord(rdi))
	m.setFlagsThunk(op, m.loadWidened(from, size), m.loadWidened(to, size))
	step := m.assignOperation("Mul64", m.assignTemp(readStateWord(OffsetDFlag)), constantWord(uint64(size)))
	m.putState(rsi, m.assignOperation("Add64", from, step))
	m.putState(rdi, m.assignOperation("Add64", to, step))
	return m.stmts
}

func (in instruction) makeTranslate() []Stmt {
	const rbx = OffsetRAX + 8*3
	m := &statementMaker{}
	al := m.assignOperation("And64", m.assignTemp(readStateWord(OffsetRAX)), constantWord(0xff))
	m.putState(OffsetRAX, m.assignTemp(&Load{Type: I8, Addr: m.assignOperation("Add64", m.assignTemp(readStateWord(rbx)), al)}))
	return m.stmts
}

// specialBlock is the block of a special instruction.
func specialBlock(in instruction, stmts []Stmt) *Block {
	b := &Block{Addr: in.addr, Size: in.length, Next: constantWord(in.addr + uint64(in.length)), Jump: JumpBoring}
	b.Stmts = append([]Stmt{&Mark{Addr: in.addr, Len: in.length}}, stmts...)
	for _, s := range stmts {
		if a, ok := s.(*Assign); ok {
			b.Types = append(b.Types, typeOfData(a.Data))
		}
	}
	return b
}

// typeOfData is the type of an assignment in a special instruction.
func typeOfData(e Expr) Type {
	switch e := e.(type) {
	case *Load:
		return e.Type
	case *Operation:
		if e.Op == opNumber("64to8") {
			return I8
		}
	}
	return I64
}

// withConstantFlags adds the flags that are always set to the value that PUSHF stores.
func withConstantFlags(b *Block) {
	for i, s := range b.Stmts {
		s, ok := s.(*Store)
		if !ok {
			continue
		}
		t := Temp(len(b.Types))
		b.Types = append(b.Types, I64)
		flags := &Assign{Temp: t, Data: &Operation{Op: opNumber("Or64"), Args: []Expr{s.Data, constantWord(alwaysSetFlags)}}}
		stored := &Store{Guard: s.Guard, Addr: s.Addr, Data: &Read{Temp: t}}
		b.Stmts = slices.Replace(b.Stmts, i, i+1, Stmt(flags), Stmt(stored))
		return
	}
}
