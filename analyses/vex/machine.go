package vex

import (
	"encoding/binary"
	"fmt"
)

// Memory is the memory of loads and stores.
type Memory interface {
	// Load fills p from an address.
	Load(addr uint64, p []byte) error
	// Store writes p to an address.
	Store(addr uint64, p []byte) error
}

// Machine interprets blocks. It is for one goroutine.
type Machine struct {
	State  State
	Memory Memory
	// CPUID returns the result of the instruction; nil makes it an error.
	CPUID func(leaf, subleaf uint32) [4]uint32

	// TSC returns the result of RDTSC; nil makes it an error.
	TSC func() uint64
	// MXCSR has the exception flags and masks, which are not in the state.
	MXCSR uint32
	// PC is the current instruction, Count the number of instructions that the last block
	// has begun.
	PC    uint64
	Count int
	// Done is the number of statements of the last block that were executed, with a side
	// exit that was taken.
	Done int
	// Exited is set if the last block was left by a side exit, statement Done-1.
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

// Run runs a block and returns its successor and the kind of the jump. It returns an error
// for an unknown operation and for errors of Memory; then the state and memory are those in
// the middle of the block.
func (m *Machine) Run(b *Block) (next uint64, jump JumpKind, err error) {
	f := b.Flat()
	if m.table == nil {
		m.table = operationFuncs()
	}
	if n := len(f.Bits); len(m.temps) < n {
		m.temps = make([]Value, 2*n)
	}
	if m.flat != f {
		m.flat = f
		copy(m.temps[f.None:], f.Constants)
	}
	m.types, m.err, m.PC, m.Count = b.Types, nil, b.Addr, 0
	next, jump = m.runSteps(b, f)
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

// Temp is the value of a temporary in the last block.
func (m *Machine) Temp(t Temp) Value { return m.temps[t] }

func (m *Machine) setError(format string, args ...any) Value {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
	return Value{}
}

// runStatement runs a statement. A jump kind other than JumpInvalid leaves the block.
func (m *Machine) runStatement(s Stmt) (uint64, JumpKind) {
	switch s := s.(type) {
	case *Mark:
		m.PC = s.Addr
		if s.Len > 0 { // otherwise it marks no instruction
			m.Count++
		}
	case *Put:
		v := m.evaluate(s.Data)
		m.State.writeTyped(s.Offset, m.operandType(s.Data), v)
	case *Assign:
		m.temps[s.Temp] = m.evaluate(s.Data)
	case *Store:
		if s.Guard == nil || m.evaluate(s.Guard).Lo != 0 {
			m.storeMemory(m.evaluate(s.Addr).Lo, m.evaluate(s.Data), m.operandType(s.Data).Bytes())
		}
	case *Exit:
		if m.evaluate(s.Guard).Lo != 0 {
			return s.Dst, s.Jump
		}
	case *PutI:
		v := m.evaluate(s.Data)
		m.State.writeTyped(m.elementOffset(s.Array, s.Index, s.Bias), s.Array.Elem, v)
	case *LoadG:
		m.temps[s.Temp] = m.loadGuarded(s)
	case *CAS:
		m.compareAndSwap(s)
	case *Dirty:
		m.callDirtyHelper(s)
	}
	return 0, JumpInvalid
}

func (m *Machine) evaluate(e Expr) Value {
	switch e := e.(type) {
	case *Read:
		return m.temps[e.Temp]
	case *Const:
		if e.Type == V128 {
			return expandByteMask(e.Bits)
		}
		return wordValue(e.Bits)
	case *Get:
		return m.State.readTyped(e.Offset, e.Type)
	case *Operation:
		return m.applyOperation(e)
	case *Load:
		return m.loadMemory(m.evaluate(e.Addr).Lo, e.Type.Bytes())
	case *ITE:
		if m.evaluate(e.Cond).Lo != 0 {
			return m.evaluate(e.Then)
		}
		return m.evaluate(e.Else)
	case *GetI:
		return m.State.readTyped(m.elementOffset(e.Array, e.Index, e.Bias), e.Array.Elem)
	case *Call:
		return m.callHelper(e)
	default:
		return m.setError("%v has no value", e)
	}
}

func (m *Machine) applyOperation(e *Operation) Value {
	f := m.table[e.Op]
	if f == nil {
		return m.setError("operation %v is not known", e.Op)
	}
	var args [4]Value
	for i, a := range e.Args {
		args[i] = m.evaluate(a)
	}
	m.args = args // avoids an allocation for each operation
	return f(&m.args)
}

// operandType is the type of an operand of a put or store: libVEX makes that a temporary or
// a constant.
func (m *Machine) operandType(e Expr) Type {
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
		m.setError("the type of %v is not known", e)
		return I64
	}
}

// elementOffset is the offset of an array's element in the state.
func (m *Machine) elementOffset(a Array, index Expr, bias int) int {
	i := (int(int32(m.evaluate(index).Lo)) + bias) % a.Count
	if i < 0 {
		i += a.Count
	}
	return a.Base + i*a.Elem.Bytes()
}

func (m *Machine) loadMemory(addr uint64, size int) Value {
	p := m.bytes[:size]
	if err := m.Memory.Load(addr, p); err != nil {
		return m.setError("%w", err)
	}
	clear(m.bytes[size:])
	return Value{binary.LittleEndian.Uint64(m.bytes[:]), binary.LittleEndian.Uint64(m.bytes[8:])}
}

func (m *Machine) storeMemory(addr uint64, v Value, size int) {
	if m.err != nil {
		return
	}
	binary.LittleEndian.PutUint64(m.bytes[:], v.Lo)
	binary.LittleEndian.PutUint64(m.bytes[8:], v.Hi)
	if err := m.Memory.Store(addr, m.bytes[:size]); err != nil {
		m.setError("%w", err)
	}
}

func (m *Machine) loadGuarded(s *LoadG) Value {
	if m.evaluate(s.Guard).Lo == 0 {
		return m.evaluate(s.Alt)
	}
	addr := m.evaluate(s.Addr).Lo
	switch s.Cvt {
	case LoadV128:
		return m.loadMemory(addr, 16)
	case Load64:
		return m.loadMemory(addr, 8)
	case Load32:
		return m.loadMemory(addr, 4)
	case Load16Uto32:
		return m.loadMemory(addr, 2)
	case Load16Sto32:
		return wordValue(lowBits(uint64(signedBits(m.loadMemory(addr, 2).Lo, 16)), 32))
	case Load8Uto32:
		return m.loadMemory(addr, 1)
	case Load8Sto32:
		return wordValue(lowBits(uint64(signedBits(m.loadMemory(addr, 1).Lo, 8)), 32))
	default:
		return m.setError("%v is not known", s)
	}
}

func (m *Machine) compareAndSwap(s *CAS) {
	addr, size := m.evaluate(s.Addr).Lo, m.types[s.OldLo].Bytes()
	lowPart := m.loadMemory(addr, size)
	equal := lowPart == m.evaluate(s.ExpectedLo)
	m.temps[s.OldLo] = lowPart
	if s.ExpectedHi != nil {
		highPart := m.loadMemory(addr+uint64(size), size)
		equal = equal && highPart == m.evaluate(s.ExpectedHi)
		m.temps[s.OldHi] = highPart
	}
	dataLo := lowPart
	if equal {
		dataLo = m.evaluate(s.DataLo)
	}
	// A failed exchange writes the old value back (SDM volume 2, CMPXCHG).
	m.storeMemory(addr, dataLo, size)
	if s.DataHi == nil {
		return
	}
	dataHi := m.temps[s.OldHi]
	if equal {
		dataHi = m.evaluate(s.DataHi)
	}
	m.storeMemory(addr+uint64(size), dataHi, size)
}
