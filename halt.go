package heddle

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel/buffers"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

var errNoThreads = errs.Define("run-has-one-thread",
	"the run in {file} never has a second thread",
	"The program ended, or comes to its limit of instructions, before it made a thread.",
	"What a program of one thread does depends on no schedule; replay the trace instead.")

// Halt is a machine in the middle of a run: in the part that no schedule changes, before
// the program's second thread, or at a checkpoint. It must be closed.
type Halt struct {
	m    *Machine
	task *kernel.Task
	// Regs and FP are the registers of the program's one thread, if it has one.
	Regs emu.Regs
	FP   [emu.FPSize]byte
	// Instructions is how many all threads have retired.
	Instructions uint64

	way way
}

// Thread is the program's first thread.
func (h *Halt) Thread() event.ThreadID { return h.task.ID() }

// Peek reads the program's memory and returns how much of it there is.
func (h *Halt) Peek(at event.Addr, b []byte) int { return h.task.Process().Peek(at, b) }

// File reads the regular file that the program would open by a name, and what stat(2)
// says of it.
func (h *Halt) File(name string) (content, stat []byte, errno unix.Errno) {
	return h.task.FileContent(name)
}

// Mappings are what the program's memory consists of, by address.
func (h *Halt) Mappings() []mm.VMA { return h.task.Process().Space().VMAs() }

// CPUID answers the instruction as the machine does.
func (h *Halt) CPUID(leaf, subleaf uint32) [4]uint32 { return h.m.cpu.CPUID(leaf, subleaf) }

// TLS is, at a clone, the thread pointer that the new thread gets.
func (h *Halt) TLS() event.Addr {
	if h.Regs.GPR[emu.RAX] == unix.SYS_CLONE {
		return event.Addr(h.Regs.GPR[emu.R8])
	}
	const tls = 56
	return h.cloneArgument(tls)
}

// cloneArgument is a field of the struct clone_args (clone(2)) that a clone3 is given.
func (h *Halt) cloneArgument(offset event.Addr) event.Addr {
	var b [8]byte
	h.Peek(event.Addr(h.Regs.GPR[emu.RDI])+offset, b[:])
	return event.Addr(binary.LittleEndian.Uint64(b[:]))
}

// Stack is, at a clone, the stack pointer that the new thread gets.
func (h *Halt) Stack() event.Addr {
	if h.Regs.GPR[emu.RAX] == unix.SYS_CLONE {
		return event.Addr(h.Regs.GPR[emu.RSI])
	}
	const stack, size = 40, 48
	return h.cloneArgument(stack) + h.cloneArgument(size)
}

// ThreadID is, at a clone, where the new thread's number will be written; 0: nowhere.
func (h *Halt) ThreadID() event.Addr {
	if h.Regs.GPR[emu.RAX] == unix.SYS_CLONE {
		return event.Addr(h.Regs.GPR[emu.RDX])
	}
	const parentTID = 24
	return h.cloneArgument(parentTID)
}

// Close gives the machine back.
func (h *Halt) Close() { h.m.Close() }

// FirstClone runs the recorded program anew, by its configuration and inputs alone,
// up to the call that makes its second thread.
func (r *Replay) FirstClone(ctx context.Context) (*Halt, error) {
	return r.halt(ctx, &rehearsal{Tracker: minimize.NewTracker(nil)}, func(_ *Halt, s emu.Stop, regs *emu.Regs) bool {
		number := regs.GPR[emu.RAX]
		return s.Reason == emu.StopSyscall && (number == unix.SYS_CLONE || number == unix.SYS_CLONE3)
	})
}

// HaltAt runs the recorded program anew up to the first instruction that is wanted,
// behind so many of its first thread, within the next window instructions.
func (r *Replay) HaltAt(ctx context.Context, thread event.ThreadID, behind, window uint64, want func(pc event.Addr) bool) (*Halt, error) {
	plan := minimize.Schedule{{Thread: thread, To: behind}}
	for i := range window {
		plan = append(plan, minimize.Step{Thread: thread, To: behind + i + 1})
	}
	f := minimize.NewFollower(plan, nil)
	return r.halt(ctx, &rehearsal{Tracker: f.Tracker, follower: f}, func(h *Halt, _ emu.Stop, regs *emu.Regs) bool {
		return h.Instructions >= behind && want(event.Addr(regs.RIP))
	})
}

// halt runs the program until a slice ends as wanted.
func (r *Replay) halt(ctx context.Context, watch *rehearsal, wanted func(*Halt, emu.Stop, *emu.Regs) bool) (*Halt, error) {
	if in := r.stdin; in != nil {
		r.stdin = nil
		_ = in.Close() // it was read only
	}
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	// One thread sees its own stores under every model; under SC they are in memory.
	c.Replay, c.rehearsal, c.Memory = nil, watch, buffers.Options{}
	h := &Halt{}
	done := false
	watch.places = func(t *kernel.Task, regs emu.Regs, s emu.Stop) {
		h.Instructions += s.Instructions
		if !done && wanted(h, s, &regs) {
			done, h.task, h.Regs = true, t, regs
			var fp [emu.FPSize]byte
			h.m.cpu.FP(&fp)
			h.FP = fp
		}
	}
	if h.m, err = New(c); err != nil {
		return nil, err
	}
	for n := 0; !done && !h.m.done; n++ {
		h.m.Step()
		if n%256 == 0 && ctx.Err() != nil {
			h.m.Close()
			return nil, ctx.Err()
		}
	}
	if !done {
		h.m.Close()
		return nil, errNoThreads.New(r.path)
	}
	return h, nil
}
