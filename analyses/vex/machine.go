package vex

import (
	"encoding/binary"
	"fmt"
)

// Memory is what loads and stores act on.
type Memory interface {
	// Load fills p from an address.
	Load(addr uint64, p []byte) error
	// Store writes p to an address.
	Store(addr uint64, p []byte) error
}

// Machine runs blocks: it is the meaning of the representation. It is for one
// goroutine.
type Machine struct {
	State  State
	Memory Memory
	// CPUID answers the instruction; nil makes it an error.
	CPUID func(leaf, subleaf uint32) [4]uint32

	// TSC answers RDTSC; nil makes it an error.
	TSC func() uint64
	// MXCSR has the exception flags and masks, which are not in the state.
	MXCSR uint32
	// PC is the instruction that the machine is at, and Count how many it has
	// begun in the last block.
	PC    uint64
	Count int
	// Done is how many statements of the last block were carried out, a side exit
	// that was taken among them.
	Done int
	// Exited tells that the last block was left by a side exit, statement Done-1.
	Exited bool

	// temps has the operands of the last block, by number (Flat).
	temps []Value
	flat  *Flat // the last block's
	table []opFunc
	types []Type
	args  [4]Value
	bytes [16]byte
	err   error
}

// Run runs a block and returns where it goes, and by which kind of jump. An
// error says what the machine does not know, or is memory's; then the state and
// memory are those of the middle of the block.
func (m *Machine) Run(b *Block) (next uint64, jump JumpKind, err error) {
	f := b.Flat()
	if m.table == nil {
		m.table = ops()
	}
	if n := len(f.Bits); len(m.temps) < n {
		m.temps = make([]Value, 2*n)
	}
	if m.flat != f {
		m.flat = f
		copy(m.temps[f.None:], f.Constants)
	}
	m.types, m.err, m.PC, m.Count = b.Types, nil, b.Addr, 0
	next, jump = m.steps(b, f)
	m.Exited = jump != JumpInvalid
	if m.err == nil && !m.Exited {
		next, jump = m.temps[f.Next].Lo, b.Jump
	}
	if m.err != nil {
		return 0, JumpInvalid, fmt.Errorf("instruction at %#x: %w", m.PC, m.err)
	}
	m.State.SetWord(OffsetRIP, next)
	return next, jump, nil
}

// Temp is what the last block has given a temporary.
func (m *Machine) Temp(t Temp) Value { return m.temps[t] }

func (m *Machine) fail(format string, args ...any) Value {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
	return Value{}
}

// step runs a statement. A jump kind other than JumpInvalid leaves the block.
func (m *Machine) step(s Stmt) (uint64, JumpKind) {
	switch s := s.(type) {
	case *Mark:
		m.PC = s.Addr
		if s.Len > 0 { // otherwise there is no instruction
			m.Count++
		}
	case *Put:
		v := m.eval(s.Data)
		m.State.put(s.Offset, m.typeOf(s.Data), v)
	case *Assign:
		m.temps[s.Temp] = m.eval(s.Data)
	case *Store:
		if s.Guard == nil || m.eval(s.Guard).Lo != 0 {
			m.store(m.eval(s.Addr).Lo, m.eval(s.Data), m.typeOf(s.Data).Bytes())
		}
	case *Exit:
		if m.eval(s.Guard).Lo != 0 {
			return s.Dst, s.Jump
		}
	case *PutI:
		v := m.eval(s.Data)
		m.State.put(m.element(s.Array, s.Index, s.Bias), s.Array.Elem, v)
	case *LoadG:
		m.temps[s.Temp] = m.loadGuarded(s)
	case *CAS:
		m.compareAndSwap(s)
	case *Dirty:
		m.dirty(s)
	}
	return 0, JumpInvalid
}

func (m *Machine) eval(e Expr) Value {
	switch e := e.(type) {
	case *Read:
		return m.temps[e.Temp]
	case *Const:
		if e.Type == V128 {
			return byteMask(e.Bits)
		}
		return value(e.Bits)
	case *Get:
		return m.State.get(e.Offset, e.Type)
	case *Operation:
		return m.operate(e)
	case *Load:
		return m.load(m.eval(e.Addr).Lo, e.Type.Bytes())
	case *ITE:
		if m.eval(e.Cond).Lo != 0 {
			return m.eval(e.Then)
		}
		return m.eval(e.Else)
	case *GetI:
		return m.State.get(m.element(e.Array, e.Index, e.Bias), e.Array.Elem)
	case *Call:
		return m.call(e)
	default:
		return m.fail("%v has no value", e)
	}
}

func (m *Machine) operate(e *Operation) Value {
	f := m.table[e.Op]
	if f == nil {
		return m.fail("operation %v is not known", e.Op)
	}
	var args [4]Value
	for i, a := range e.Args {
		args[i] = m.eval(a)
	}
	m.args = args // no new memory for each operation
	return f(&m.args)
}

// typeOf is the type of what is put or stored: libVEX makes that a temporary or
// a constant.
func (m *Machine) typeOf(e Expr) Type {
	switch e := e.(type) {
	case *Read:
		return m.types[e.Temp]
	case *Const:
		return e.Type
	case *Get:
		return e.Type
	case *Load:
		return e.Type
	default:
		m.fail("the type of %v is not known", e)
		return I64
	}
}

// element is where in the state an array's element is.
func (m *Machine) element(a Array, index Expr, bias int) int {
	i := (int(int32(m.eval(index).Lo)) + bias) % a.Count
	if i < 0 {
		i += a.Count
	}
	return a.Base + i*a.Elem.Bytes()
}

func (m *Machine) load(addr uint64, size int) Value {
	p := m.bytes[:size]
	if err := m.Memory.Load(addr, p); err != nil {
		return m.fail("%w", err)
	}
	clear(m.bytes[size:])
	return Value{binary.LittleEndian.Uint64(m.bytes[:]), binary.LittleEndian.Uint64(m.bytes[8:])}
}

func (m *Machine) store(addr uint64, v Value, size int) {
	if m.err != nil {
		return
	}
	binary.LittleEndian.PutUint64(m.bytes[:], v.Lo)
	binary.LittleEndian.PutUint64(m.bytes[8:], v.Hi)
	if err := m.Memory.Store(addr, m.bytes[:size]); err != nil {
		m.fail("%w", err)
	}
}

func (m *Machine) loadGuarded(s *LoadG) Value {
	if m.eval(s.Guard).Lo == 0 {
		return m.eval(s.Alt)
	}
	addr := m.eval(s.Addr).Lo
	switch s.Cvt {
	case LoadV128:
		return m.load(addr, 16)
	case Load64:
		return m.load(addr, 8)
	case Load32:
		return m.load(addr, 4)
	case Load16Uto32:
		return m.load(addr, 2)
	case Load16Sto32:
		return value(low(uint64(signed(m.load(addr, 2).Lo, 16)), 32))
	case Load8Uto32:
		return m.load(addr, 1)
	case Load8Sto32:
		return value(low(uint64(signed(m.load(addr, 1).Lo, 8)), 32))
	default:
		return m.fail("%v is not known", s)
	}
}

func (m *Machine) compareAndSwap(s *CAS) {
	addr, size := m.eval(s.Addr).Lo, m.types[s.OldLo].Bytes()
	lowPart := m.load(addr, size)
	equal := lowPart == m.eval(s.ExpectedLo)
	m.temps[s.OldLo] = lowPart
	if s.ExpectedHi != nil {
		highPart := m.load(addr+uint64(size), size)
		equal = equal && highPart == m.eval(s.ExpectedHi)
		m.temps[s.OldHi] = highPart
	}
	dataLo := lowPart
	if equal {
		dataLo = m.eval(s.DataLo)
	}
	// What is not replaced is written back (SDM volume 2, CMPXCHG).
	m.store(addr, dataLo, size)
	if s.DataHi == nil {
		return
	}
	dataHi := m.temps[s.OldHi]
	if equal {
		dataHi = m.eval(s.DataHi)
	}
	m.store(addr+uint64(size), dataHi, size)
}
