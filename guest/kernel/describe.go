package kernel

import (
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/loader"
)

// maxStack bounds the functions that are listed of one thread.
const maxStack = 32

// Describe says of every thread where it is, a paragraph each: what it waits
// for and, where symbols tell, the functions that are active in it.
func (k *Kernel) Describe() string {
	var b strings.Builder
	u := loader.NewUnwinder()
	for _, t := range k.Tasks() {
		fmt.Fprintf(&b, "thread %d %q of process %d (%s): %s\n", t.id, t.name, t.proc.pid, t.proc.path, t.activity())
		for _, frame := range u.Stack(t.proc.space, t.currentRegs(), maxStack) {
			fmt.Fprintf(&b, "    %s\n", frame)
		}
	}
	return b.String()
}

// activity says what the thread is doing.
func (t *Task) activity() string {
	switch t.state {
	case stopped:
		return "stopped by a signal"
	case traced:
		if tracer := t.trace.tracer; !tracer.proc.outside {
			return fmt.Sprintf("stopped for its tracer, thread %d", tracer.id)
		}
		return "stopped for a tracer outside of the program, its parent"
	case running:
		return fmt.Sprintf("runnable at %#x", t.currentRegs().RIP)
	}
	c := &t.call
	text := "waits in " + linux.Name(c.number)
	switch {
	case c.futex != nil && c.futex.lock != nil:
		text += fmt.Sprintf(" for the lock at %#x, which thread %d has", c.futex.addr, c.futex.lock.owner.id)
	case c.futex != nil:
		text += fmt.Sprintf(" on the word at %#x", c.args[0])
	case linux.Arity(c.number) > 0:
		text += fmt.Sprintf(" (first argument %#x)", c.args[0])
	}
	return text
}

// currentRegs are the thread's registers, wherever they are.
func (t *Task) currentRegs() arch.Regs {
	if t.dirty {
		return t.regs
	}
	t.Load()
	t.k.cpu.Regs(&t.regs)
	return t.regs
}

// DigestMemory tells the observer of the address spaces that still exist.
func (k *Kernel) DigestMemory() {
	for _, p := range k.sortedProcesses() {
		if !p.status.zombie && !p.outside {
			k.observer.Memory(p.pid, digestOf(p.space.Digest))
		}
	}
}
