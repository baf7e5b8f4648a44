package h3

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	trials "github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

var errNoThreads = errs.Define("run-has-one-thread",
	"the run in {file} has only one thread",
	"The program ended, or reached its limit of instructions, before it created a thread.",
	"The run of a program of one thread depends on no schedule; replay the trace instead.")

// PausedRun is a machine in the middle of a run: in the part that no schedule changes, before
// the program's second thread, or at a checkpoint. It must be closed.
type PausedRun struct {
	m    *machine.Machine
	task *kernel.Task
	// Regs and FP are the registers of the program's one thread, if it has one.
	Regs arch.Regs
	FP   [arch.FPSize]byte
	// Instructions is how many all threads have retired.
	Instructions uint64

	progress runProgress
}

// Thread is the program's first thread.
func (h *PausedRun) Thread() arch.ThreadID { return h.task.ID() }

// Peek reads the program's memory and returns how much of it there is.
func (h *PausedRun) Peek(at arch.Addr, b []byte) int { return h.task.Process().Peek(at, b) }

// File reads the regular file that the program would open by a name, and its
// stat(2).
func (h *PausedRun) File(name string) (content, stat []byte, errno unix.Errno) {
	return h.task.FileContent(name)
}

// Mappings are the mappings of the program's memory, by address.
func (h *PausedRun) Mappings() []mm.VMA { return h.task.Process().Space().VMAs() }

// CPUID answers the instruction as the machine does.
func (h *PausedRun) CPUID(leaf, subleaf uint32) [4]uint32 { return h.m.CPU().CPUID(leaf, subleaf) }

// TLS is, at a clone, the thread pointer that the new thread gets.
func (h *PausedRun) TLS() arch.Addr {
	if h.Regs.GPR[arch.RAX] == unix.SYS_CLONE {
		return arch.Addr(h.Regs.GPR[arch.R8])
	}
	const tls = 56
	return h.cloneArgument(tls)
}

// cloneArgument is a field of the struct clone_args (clone(2)) that a clone3 is given.
func (h *PausedRun) cloneArgument(offset arch.Addr) arch.Addr {
	var b [8]byte
	h.Peek(arch.Addr(h.Regs.GPR[arch.RDI])+offset, b[:])
	return arch.Addr(binary.LittleEndian.Uint64(b[:]))
}

// Stack is, at a clone, the stack pointer that the new thread gets.
func (h *PausedRun) Stack() arch.Addr {
	if h.Regs.GPR[arch.RAX] == unix.SYS_CLONE {
		return arch.Addr(h.Regs.GPR[arch.RSI])
	}
	const stack, size = 40, 48
	return h.cloneArgument(stack) + h.cloneArgument(size)
}

// ThreadID is, at a clone, where the new thread's number will be written; 0: nowhere.
func (h *PausedRun) ThreadID() arch.Addr {
	if h.Regs.GPR[arch.RAX] == unix.SYS_CLONE {
		return arch.Addr(h.Regs.GPR[arch.RDX])
	}
	const parentTID = 24
	return h.cloneArgument(parentTID)
}

// Close gives the machine back.
func (h *PausedRun) Close() { h.m.Close() }

// runToFirstClone runs the recorded program anew, by its configuration and inputs alone, up to
// the call that makes its second thread.
func runToFirstClone(ctx context.Context, r *machine.Replay) (*PausedRun, error) {
	return pauseRun(ctx, r, nil, func(_ *PausedRun, s arch.Stop, regs *arch.Regs) bool {
		number := regs.GPR[arch.RAX]
		return s.Reason == arch.StopSyscall && (number == unix.SYS_CLONE || number == unix.SYS_CLONE3)
	})
}

// runToInstruction runs the recorded program anew up to the first instruction that is wanted,
// after a number of instructions of its first thread, and within the next window ones.
func runToInstruction(ctx context.Context, r *machine.Replay, thread arch.ThreadID, after, window uint64, want func(pc arch.Addr) bool) (*PausedRun, error) {
	plan := minimize.Schedule{{Thread: thread, To: after}}
	for i := range window {
		plan = append(plan, minimize.Step{Thread: thread, To: after + i + 1})
	}
	options := trials.FollowerOptions(minimize.NewFollower(plan, nil))
	return pauseRun(ctx, r, options, func(h *PausedRun, _ arch.Stop, regs *arch.Regs) bool {
		return h.Instructions >= after && want(arch.Addr(regs.RIP))
	})
}

// quantumHook calls a function at the end of each quantum.
type quantumHook struct {
	machine.NoHook
	m    *machine.Machine
	call func(*machine.Machine, *kernel.Task, arch.Stop)
}

// Prepare implements machine.Hook.
func (q *quantumHook) Prepare(m *machine.Machine) error {
	q.m = m
	return nil
}

// AfterQuantum implements machine.Hook.
func (q *quantumHook) AfterQuantum(t *kernel.Task, s arch.Stop) { q.call(q.m, t, s) }

// pauseRun runs the program until a quantum ends as wanted.
func pauseRun(ctx context.Context, r *machine.Replay, options []machine.Option, wanted func(*PausedRun, arch.Stop, *arch.Regs) bool) (*PausedRun, error) {
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	// One thread sees its own stores under every model; under SC they are in memory.
	c.Replay, c.Memory = nil, storebuffer.Options{}
	h := &PausedRun{}
	done := false
	hook := &quantumHook{call: func(m *machine.Machine, t *kernel.Task, s arch.Stop) {
		var regs arch.Regs
		m.CPU().Regs(&regs)
		h.Instructions += s.Instructions
		if !done && wanted(h, s, &regs) {
			done, h.task, h.Regs = true, t, regs
			var fp [arch.FPSize]byte // h has pointers, which cgo does not take
			m.CPU().FP(&fp)
			h.FP = fp
		}
	}}
	if h.m, err = machine.New(c, append(options, machine.WithHook(hook), machine.Isolated())...); err != nil {
		return nil, err
	}
	for n := 0; !done && !h.m.Done(); n++ {
		h.m.Step()
		if n%stepsBetweenChecks == 0 && ctx.Err() != nil {
			h.m.Close()
			return nil, ctx.Err()
		}
	}
	if !done {
		h.m.Close()
		return nil, errNoThreads.New(r.Path())
	}
	return h, nil
}

// stepsBetweenChecks is after how many steps of a machine it is checked whether the search is
// to end.
const stepsBetweenChecks = 256
