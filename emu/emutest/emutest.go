// Package emutest makes machines for tests of engines: one thread and its memory, without an
// operating system.
package emutest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// Addresses of a Machine's code, of its four pages of data and of its one page of stack.
const (
	CodeBase  arch.Addr = 0x400000
	DataBase  arch.Addr = 0x600000
	StackBase arch.Addr = 0x7f0000
)

var assembled sync.Map // machine code by source

// Assemble translates assembly in Intel syntax to machine code with the system's assembler. The
// caller does not change the bytes.
func Assemble(t testing.TB, source string) []byte {
	t.Helper()
	if code, ok := assembled.Load(source); ok {
		return code.([]byte)
	}
	obj, bin := filepath.Join(t.TempDir(), "code.o"), filepath.Join(t.TempDir(), "code")
	for _, args := range [][]string{{"as", "-o", obj}, {"objcopy", "-O", "binary", "-j", ".text", obj, bin}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin = strings.NewReader(".intel_syntax noprefix\n.text\n" + source + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	code, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	assembled.Store(source, code)
	return code
}

// Machine is an engine with one thread, which is loaded.
type Machine[C emu.CPU] struct {
	testing.TB
	RAM   *mem.RAM
	CPU   C
	Space *mem.Space
	Ctx   arch.Context
}

// NewRAM makes a memory that is large enough for a test.
func NewRAM(t testing.TB) *mem.RAM {
	t.Helper()
	ram, err := mem.NewRAM(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return ram
}

// New makes a machine in a memory, with the engine that open makes. The thread is at the first
// instruction of code, with an empty stack. Memory and engine are closed when the test ends.
func New[C emu.CPU](t testing.TB, open func(*mem.RAM) (C, error), ram *mem.RAM, code []byte) *Machine[C] {
	t.Helper()
	cpu, err := open(ram)
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine[C]{TB: t, RAM: ram, CPU: cpu, Space: mem.NewSpace(ram)}
	t.Cleanup(func() { cpu.Close(); ram.Close() })
	for off := 0; off <= len(code); off += arch.PageSize {
		m.MapPage(CodeBase+arch.Addr(off), arch.Read|arch.Exec)
		p := m.Space.Get(CodeBase + arch.Addr(off)).Page()
		copy(ram.Bytes(p), code[off:])
	}
	for i := range arch.Addr(4) {
		m.MapPage(DataBase+i*arch.PageSize, arch.Read|arch.Write)
	}
	m.MapPage(StackBase, arch.Read|arch.Write)
	m.Ctx = cpu.NewContext()
	cpu.Load(m.Ctx, m.Space)
	m.ChangeRegs(func(r *arch.Regs) { r.RIP = uint64(CodeBase); r.GPR[arch.RSP] = uint64(StackBase) + arch.PageSize })
	return m
}

// MapPage maps an empty page at the page of an address.
func (m *Machine[C]) MapPage(at arch.Addr, perm arch.Perm) {
	p, ok := m.RAM.Alloc()
	if !ok {
		m.Fatal("no memory")
	}
	m.Space.Set(at&^(arch.PageSize-1), mem.MakePTE(p, perm, false))
}

// Regs returns the thread's integer registers.
func (m *Machine[C]) Regs() (r arch.Regs) {
	m.CPU.Regs(&r)
	return r
}

// ChangeRegs changes the thread's integer registers.
func (m *Machine[C]) ChangeRegs(change func(*arch.Regs)) {
	r := m.Regs()
	change(&r)
	m.CPU.SetRegs(&r)
}

// ExpectStop ends the test if a run did not stop for the given reason, at the given PC and after the
// given number of instructions.
func (m *Machine[C]) ExpectStop(s arch.Stop, reason arch.StopReason, pc, instructions uint64) {
	m.Helper()
	if s.Reason != reason || m.Regs().RIP != pc || s.Instructions != instructions {
		m.Fatalf("stopped for reason %d at %#x after %d instructions (vector %d, err %v); want reason %d at %#x after %d",
			s.Reason, m.Regs().RIP, s.Instructions, s.Vector, s.Err, reason, pc, instructions)
	}
}
