package explore

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

var (
	errAccess = errs.Define("litmus-access",
		"{file}: P{thread} accesses {address} in line {line}, where the test has no location",
		"A register that serves as an address does not point to a location of the test, or beyond its end.",
		"Give the register the address of a location in the initial state.")
	errStates = errs.Define("litmus-too-large",
		"{file}: the test has more than {limit} states",
		"Exploring every interleaving would take more memory than is sensible.",
		"Use --random N for a sample of its executions.")
)

// codeBase is where the code of tests begins in the machine.
const codeBase arch.Addr = 0x400000

// Machine is an emulated processor that runs single instructions of litmus
// tests. It must be closed, and used by one goroutine at a time.
type Machine struct {
	ram   *mem.RAM
	cpu   emu.CPU
	log   emu.AccessLog
	space *mem.Space
	ctx   arch.Context
	data  mem.Page
	next  arch.Addr // where the next code goes
	taken []emu.MemoryAccess
}

// NewMachine starts a processor on the engine of that name, for which engines.Check has returned nil.
func NewMachine(engine string) (*Machine, error) {
	m := &Machine{next: codeBase}
	if err := m.startEngine(engine); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Machine) startEngine(engine string) (err error) {
	if m.ram, err = mem.NewRAM(64 << 20); err != nil {
		return err
	}
	if m.cpu, err = engines.New(engine, arch.V2, m.ram, 1, arch.DefaultCosts()); err != nil {
		return err
	}
	if m.log, err = m.cpu.LogAccesses(); err != nil {
		return err
	}
	m.space = mem.NewSpace(m.ram)
	m.data = m.allocatePage()
	m.space.Set(litmus.DataBase, mem.MakePTE(m.data, arch.Read|arch.Write, false))
	m.ctx = m.cpu.NewContext()
	m.cpu.Load(m.ctx, m.space)
	return nil
}

func (m *Machine) allocatePage() mem.Page {
	p, ok := m.ram.Alloc()
	if !ok {
		panic("bug: no memory for the code of litmus tests")
	}
	return p
}

// Close gives everything back.
func (m *Machine) Close() {
	if m.ctx != nil {
		m.ctx.Release()
	}
	if m.log != nil {
		m.log.Close()
	}
	if m.space != nil {
		m.space.Release()
	}
	if m.cpu != nil {
		m.cpu.Close()
	}
	if m.ram != nil {
		m.ram.Close()
	}
}

// maxCode is how much code the machine holds before it begins again.
const maxCode = 16 << 20

// makeRoom forgets the code of earlier tests when there is much of it.
func (m *Machine) makeRoom() {
	if m.next > codeBase+maxCode {
		m.space.Unmap(codeBase, m.next)
		m.next = codeBase
	}
}

// loadCode puts a thread's code into the machine and says where. Nothing was run
// yet from where it goes, so no translation is outdated by it.
func (m *Machine) loadCode(code []byte) arch.Addr {
	start := m.next
	for at := start; len(code) > 0; {
		offset := at % arch.PageSize
		if offset == 0 {
			m.space.Set(at, mem.MakePTE(m.allocatePage(), arch.Read|arch.Exec, false))
		}
		n := copy(m.ram.Bytes(m.space.Get(at).Page())[offset:], code)
		code = code[n:]
		at += arch.Addr(n)
		m.next = at
	}
	return start
}

// span is a piece of the locations' memory: an offset and a size.
type span struct{ at, size int }

// effect is the effect of an instruction.
type effect struct {
	regs   arch.Regs
	loads  []span
	stores []write
}

// write is a store with its value.
type write struct {
	span
	data [16]byte
}

// executeAt executes the instruction at the registers' RIP on the given memory. fault is
// negative if the instruction did not fault; otherwise it is the address that could not be
// accessed.
func (m *Machine) executeAt(regs arch.Regs, memory []byte) (e effect, fault int64) {
	page := m.ram.Bytes(m.data)
	copy(page, memory)
	m.cpu.SetRegs(&regs)
	stop := m.cpu.Run(arch.Limit{Instructions: 1, Exact: true, Pass: true})
	taken, ok := m.log.Take(m.taken[:0])
	m.taken = taken
	switch {
	case !ok:
		panic("bug: too many accesses by one instruction of a litmus test")
	case stop.Reason == arch.StopFault:
		return e, int64(m.cpu.FaultAddr())
	case stop.Reason != arch.StopBudget || stop.Instructions != 1:
		panic(fmt.Sprintf("bug: a litmus instruction at %#x ended for reason %d (vector %d)", regs.RIP, stop.Reason, stop.Vector))
	}
	m.cpu.Regs(&e.regs)
	base := uint64(m.data) * arch.PageSize
	for _, a := range taken {
		off := a.Physical - base
		if off+uint64(a.Size) > uint64(len(memory)) {
			return e, int64(litmus.DataBase + off)
		}
		s := span{int(off), a.Size}
		if !a.Write {
			e.loads = append(e.loads, s)
			continue
		}
		w := write{span: s}
		copy(w.data[:], page[off:off+uint64(a.Size)])
		e.stores = append(e.stores, w)
	}
	return e, -1
}
