package windows

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
)

// The general registers of the server's threads are hidden state, too: they have addresses of their own, beyond those of memory.
// RSP is not among them, and neither are those that a system call overwrites.

const (
	registerBase  = 1 << 62
	registerBytes = 16 * wordBytes // of a thread
)

func registerAddress(t arch.ThreadID, register int) uint64 {
	return registerBase + uint64(t)*registerBytes + uint64(register)*wordBytes
}

// registerAt is the reverse.
func registerAt(at arch.Addr) (t arch.ThreadID, offset int, ok bool) {
	n := uint64(at) - registerBase
	return arch.ThreadID(n / registerBytes), int(n % registerBytes), at >= registerBase
}

// symbolicRegisters are the registers that are hidden state.
var symbolicRegisters = []int{
	arch.RDX, arch.RBX, arch.RBP, arch.RSI, arch.RDI, arch.R8, arch.R9, arch.R10, arch.R12, arch.R13, arch.R14, arch.R15,
}

// noteRegisters makes symbols of the registers of a thread that runs the first time in the window. The arguments of the system
// call that it has waited in must be the recorded ones, since the kernel acts on them; of futex(2) the address and the operation.
func (q *requestFollower) noteRegisters(t *kernel.Task) {
	call, found := q.waiting[t.ID()]
	if !found || q.run.Err() != nil {
		return
	}
	delete(q.waiting, t.ID())
	name := stateName(t.Process().PID())
	for _, r := range symbolicRegisters {
		q.run.AddRegister(t, r, name, int(registerAddress(t.ID(), r)))
	}
	arguments := []int{arch.RDI, arch.RSI, arch.RDX}
	if call == unix.SYS_FUTEX {
		arguments = arguments[:2]
	}
	for _, r := range arguments {
		for i := range uint64(wordBytes) {
			q.sets.Add(q.run.Executor.Pool.Symbol(fmt.Sprintf("%s[%d]", name, registerAddress(t.ID(), r)+i), 8))
		}
	}
}

// registerReader reads registers by their addresses, as they are now.
type registerReader map[arch.ThreadID][]byte

// newRegisterReader reads those of some processes.
func newRegisterReader(processes []*kernel.Process) registerReader {
	reader := registerReader{}
	var r arch.Regs
	var fp [arch.FPSize]byte
	for _, p := range processes {
		for _, t := range p.Threads() {
			t.Registers(&r, &fp)
			b := make([]byte, 0, registerBytes)
			for _, w := range r.GPR {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
			reader[t.ID()] = b
		}
	}
	return reader
}

// peek reads bytes, and returns how many there are.
func (reader registerReader) peek(at arch.Addr, b []byte) int {
	t, offset, _ := registerAt(at)
	if of := reader[t]; of != nil {
		return copy(b, of[offset:])
	}
	return 0
}

// registerName names a register.
func registerName(at arch.Addr) string {
	t, offset, _ := registerAt(at)
	names := []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}
	return fmt.Sprintf("register %s of thread %d", names[offset/wordBytes], t)
}
