package vex

import (
	"bytes"
	"slices"
)

// Some instructions libVEX does not know, or does in another way than the
// processor: each is a block of its own that is made here.
//
//   - BT, BTS, BTR and BTC of two registers, which it computes in memory below
//     the stack;
//   - PUSHF, of which it leaves out the flags that are always there;
//   - CMPS without a prefix, and XLAT;
//   - STMXCSR, since exception flags are not in the state;
//   - marks of heddle.h, so that whoever knows them can act.

// instruction is what is needed of one to make its block.
type instruction struct {
	code   []byte // from the opcode on
	rex    byte
	size   int // of an operand that is no byte, in bytes
	addr   uint64
	length int
}

// prefixes takes the prefixes off an instruction. LOCK, REP and the address
// size are not among those that special instructions have.
func prefixes(code []byte, addr uint64) instruction {
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

// special returns what makes an instruction's block; nil: libVEX does.
func special(in instruction) func(instruction) []Stmt {
	c := in.code
	switch {
	case len(c) >= 3 && c[0] == 0x0f && slices.Contains([]byte{0xa3, 0xab, 0xb3, 0xbb}, c[1]) && c[2]>>6 == 3:
		return (instruction).bitTest
	case len(c) >= 1 && (c[0] == 0xa6 || c[0] == 0xa7):
		return (instruction).compareStrings
	case len(c) >= 1 && c[0] == 0xd7:
		return (instruction).translate
	}
	return nil
}

// isPushFlags tells PUSHF.
func isPushFlags(in instruction) bool { return len(in.code) > 0 && in.code[0] == 0x9c }

// isStoreMXCSR tells STMXCSR, which stands alone so that whoever knows the
// exception flags can give them to the Machine.
func isStoreMXCSR(in instruction) bool {
	return len(in.code) > 2 && in.code[0] == 0x0f && in.code[1] == 0xae && in.code[2]>>3&7 == 3 && in.code[2]>>6 != 3
}

// markPrefix is the begin of a mark of heddle.h: a NOP with an operand in memory, of
// which the address tells what is marked and that it is a mark.
var markPrefix = []byte{0x0f, 0x1f, 0x80}

// markSignature are the upper bytes of the address.
var markSignature = []byte{0x6c, 0x64, 0x68}

// IsMark tells whether code begins with a mark of heddle.h, whose fourth byte is its
// kind. A mark is a block of its own.
func IsMark(code []byte) bool {
	return len(code) >= 7 && bytes.Equal(code[:3], markPrefix) && bytes.Equal(code[4:7], markSignature)
}

// maker makes the statements of an instruction; its temporaries have 64 bits.
type maker struct{ stmts []Stmt }

// let gives a new temporary the value of an expression, the operands of which are
// temporaries and constants, as in all of libVEX's code.
func (m *maker) let(e Expr) Expr {
	t := Temp(0)
	for _, s := range m.stmts {
		if _, ok := s.(*Assign); ok {
			t++
		}
	}
	m.stmts = append(m.stmts, &Assign{Temp: t, Data: e})
	return &Read{Temp: t}
}

func (m *maker) op(name string, args ...Expr) Expr {
	return m.let(&Operation{Op: opNumber(name), Args: args})
}

func (m *maker) put(offset int, e Expr) { m.stmts = append(m.stmts, &Put{Offset: offset, Data: e}) }

func word(x uint64) Expr { return &Const{Type: I64, Bits: x} }

func getWord(offset int) Expr { return &Get{Offset: offset, Type: I64} }

// flagsThunk sets what the flags are computed from.
func (m *maker) flagsThunk(op uint64, dep1, dep2 Expr) {
	m.put(OffsetCCOp, word(op))
	m.put(OffsetCCDep1, dep1)
	m.put(OffsetCCDep2, dep2)
	m.put(OffsetCCNDep, word(0))
}

// widened loads a number, zero extended to 64 bits.
func (m *maker) widened(addr Expr, size int) Expr {
	cvt, t := map[int]string{1: "8Uto64", 2: "16Uto64", 4: "32Uto64"}, map[int]Type{1: I8, 2: I16, 4: I32, 8: I64}[size]
	loaded := m.let(&Load{Type: t, Addr: addr})
	if size == 8 {
		return loaded
	}
	return m.let(&Operation{Op: opNumber(cvt[size]), Args: []Expr{loaded}})
}

func (in instruction) bitTest() []Stmt {
	m := &maker{}
	base := OffsetRAX + 8*int(in.code[2]&7|in.rex&1<<3)
	index := OffsetRAX + 8*int(in.code[2]>>3&7|in.rex&4<<1)
	old := m.let(getWord(base))
	n := m.op("And64", m.let(getWord(index)), word(uint64(8*in.size-1)))
	shift := m.let(&Operation{Op: opNumber("64to8"), Args: []Expr{n}})
	bit := m.op("And64", m.op("Shr64", old, shift), word(1))
	flags := m.let(&Call{Type: I64, Callee: "amd64g_calculate_rflags_all", Args: []Expr{
		m.let(getWord(OffsetCCOp)), m.let(getWord(OffsetCCDep1)), m.let(getWord(OffsetCCDep2)), m.let(getWord(OffsetCCNDep)),
	}})
	flags = m.op("Or64", m.op("And64", flags, word(^uint64(flagC))), bit)
	m.flagsThunk(ccCopy, flags, word(0))
	one := m.op("Shl64", word(1), shift)
	switch in.code[1] {
	case 0xab:
		old = m.op("Or64", old, one)
	case 0xb3:
		old = m.op("And64", old, m.op("Not64", one))
	case 0xbb:
		old = m.op("Xor64", old, one)
	default:
		return m.stmts
	}
	// The upper halves of registers are cleared by operations on 32 bits, and
	// kept by those on 16, where the bit is one of the lower 16.
	if in.size == 4 {
		old = m.op("And64", old, word(0xffffffff))
	}
	m.put(base, old)
	return m.stmts
}

func (in instruction) compareStrings() []Stmt {
	size, op := in.size, uint64(ccSub)
	if in.code[0] == 0xa6 {
		size = 1
	}
	for n := 1; n < size; n *= 2 {
		op++
	}
	const rsi, rdi = OffsetRAX + 8*6, OffsetRAX + 8*7
	m := &maker{}
	from, to := m.let(getWord(rsi)), m.let(getWord(rdi))
	m.flagsThunk(op, m.widened(from, size), m.widened(to, size))
	step := m.op("Mul64", m.let(getWord(OffsetDFlag)), word(uint64(size)))
	m.put(rsi, m.op("Add64", from, step))
	m.put(rdi, m.op("Add64", to, step))
	return m.stmts
}

func (in instruction) translate() []Stmt {
	const rbx = OffsetRAX + 8*3
	m := &maker{}
	al := m.op("And64", m.let(getWord(OffsetRAX)), word(0xff))
	m.put(OffsetRAX, m.let(&Load{Type: I8, Addr: m.op("Add64", m.let(getWord(rbx)), al)}))
	return m.stmts
}

// ownBlock is the block of a special instruction.
func ownBlock(in instruction, stmts []Stmt) *Block {
	b := &Block{Addr: in.addr, Size: in.length, Next: word(in.addr + uint64(in.length)), Jump: JumpBoring}
	b.Stmts = append([]Stmt{&Mark{Addr: in.addr, Len: in.length}}, stmts...)
	for _, s := range stmts {
		if a, ok := s.(*Assign); ok {
			b.Types = append(b.Types, typeOfData(a.Data))
		}
	}
	return b
}

// typeOfData is the type of what a special instruction assigns.
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

// withConstantFlags adds the flags that are always set to what PUSHF stores.
func withConstantFlags(b *Block) {
	for i, s := range b.Stmts {
		s, ok := s.(*Store)
		if !ok {
			continue
		}
		t := Temp(len(b.Types))
		b.Types = append(b.Types, I64)
		flags := &Assign{Temp: t, Data: &Operation{Op: opNumber("Or64"), Args: []Expr{s.Data, word(always)}}}
		stored := &Store{Guard: s.Guard, Addr: s.Addr, Data: &Read{Temp: t}}
		b.Stmts = slices.Replace(b.Stmts, i, i+1, Stmt(flags), Stmt(stored))
		return
	}
}
