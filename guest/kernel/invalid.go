package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/loader"
)

// InvalidInstruction is an instruction that the machine's processor does not have
// and that killed a process by SIGILL.
type InvalidInstruction struct {
	Thread arch.ThreadID
	Path   string // of the program
	PC     arch.Addr
	Code   []byte       // its bytes, as far as they are mapped, 15 at most
	Place  loader.Place // of PC
}

// longestInstruction is the number of bytes of the longest instruction (SDM volume 2,
// section 2.3.11).
const longestInstruction = 15

// InvalidInstruction is the first instruction that killed a process because the
// processor does not have it, or nil.
func (k *Kernel) InvalidInstruction() *InvalidInstruction { return k.invalid }

// noteInvalidInstruction records the instruction at the program counter if the thread is about to
// be killed by it.
func (t *Task) noteInvalidInstruction(signal int, forced bool) {
	if t.k.invalid != nil || !forced || signal != int(unix.SIGILL) || t.trap.number != vectorInvalidOpcode {
		return
	}
	r := t.currentRegs()
	at := arch.Addr(r.RIP)
	code := make([]byte, longestInstruction)
	n := t.proc.space.Peek(at, code)
	t.k.invalid = &InvalidInstruction{
		Thread: t.id, Path: t.proc.path, PC: at, Code: code[:n], Place: loader.NewUnwinder().Places(t.proc.space, r, 1)[0],
	}
}
