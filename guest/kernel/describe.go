package kernel

import (
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/loader"
)

// maxStack bounds the functions listed for one thread.
const maxStack = 32

// Describe describes the state of every thread, a paragraph each: its wait and, where
// symbols are known, the functions that are active in it.
func (k *Kernel) Describe() string {
	var b strings.Builder
	u := loader.NewUnwinder()
	for _, t := range k.Tasks() {
		fmt.Fprintf(&b, "thread %d %q of process %d (%s): %s\n", t.id, t.name, t.proc.pid, t.proc.path, t.describeActivity())
		for _, frame := range u.Stack(t.proc.space, t.currentRegs(), maxStack) {
			fmt.Fprintf(&b, "    %s\n", frame)
		}
	}
	return b.String()
}

// describeActivity describes the present activity of the thread.
func (t *Task) describeActivity() string {
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

// currentRegs returns the thread's registers, whether the kernel or the processor holds them.
func (t *Task) currentRegs() arch.Regs {
	if t.dirty {
		return t.regs
	}
	t.Load()
	t.k.cpu.Regs(&t.regs)
	return t.regs
}

// DigestMemory reports the address spaces that still exist to the observer.
func (k *Kernel) DigestMemory() {
	for _, p := range k.sortedProcesses() {
		if !p.status.zombie && !p.outside {
			k.observer.Memory(p.pid, digestOf(p.space.Digest))
		}
	}
}
