package debug

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/gdbserver"
)

// The methods of gdbserver.Target.

// process returns the process that is debugged, nil once it has ended, waited for or not.
func (d *debugger) process() *kernel.Process {
	p := d.m.Kernel().Process(d.pid)
	if p == nil || len(p.Threads()) == 0 {
		return nil
	}
	return p
}

// Threads implements gdbserver.Target.
func (d *debugger) Threads() []gdbserver.Thread {
	var list []gdbserver.Thread
	if p := d.process(); p != nil {
		for _, t := range p.Threads() {
			list = append(list, gdbserver.Thread{ID: int32(t.ID()), Name: t.Name()})
		}
	}
	return list
}

// gdbOrder is GDB's order of the general registers.
var gdbOrder = [16]int{
	arch.RAX, arch.RBX, arch.RCX, arch.RDX, arch.RSI, arch.RDI, arch.RBP, arch.RSP,
	arch.R8, arch.R9, arch.R10, arch.R11, arch.R12, arch.R13, arch.R14, arch.R15,
}

// Registers implements gdbserver.Target.
func (d *debugger) Registers(thread int32, out *gdbserver.Registers) bool {
	t := d.m.Kernel().Task(arch.ThreadID(thread))
	if t == nil {
		return false
	}
	var r arch.Regs
	t.Registers(&r, &out.FP)
	out.HasAVX = t.YMMHigh(&out.YMMHigh)
	if d.task != nil {
		d.task.Load()
	}
	// An instruction that the thread is inside is not done yet.
	if in, inside := d.m.InterruptedInstruction(t.ID()); inside {
		if before, stored := in.Before(); stored {
			r = before
		}
	}
	for i, from := range gdbOrder {
		out.GPR[i] = r.GPR[from]
	}
	out.RIP, out.RFLAGS, out.FSBase, out.GSBase = r.RIP, r.RFLAGS, r.FSBase, r.GSBase
	out.Call = ^uint64(0)
	if number, ok := t.Call(); ok {
		out.Call = number
	}
	return true
}

// Read implements gdbserver.Target.
func (d *debugger) Read(at arch.Addr, b []byte) int {
	p := d.process()
	if p == nil {
		return 0
	}
	return p.Peek(at, b)
}

// HasAVX implements gdbserver.Target.
func (d *debugger) HasAVX() bool { return d.m.Config().CPU >= arch.V3 }

// Auxv implements gdbserver.Target.
func (d *debugger) Auxv() []byte {
	if p := d.process(); p != nil {
		return p.Auxv()
	}
	return nil
}

// Program implements gdbserver.Target.
func (d *debugger) Program() string {
	if p := d.process(); p != nil {
		return p.Executable()
	}
	return ""
}

// Insert implements gdbserver.Target.
func (d *debugger) Insert(p gdbserver.Point) {
	if !slices.Contains(d.points, p) {
		d.points = append(d.points, p)
	}
}

// Remove implements gdbserver.Target.
func (d *debugger) Remove(p gdbserver.Point) {
	d.points = slices.DeleteFunc(d.points, func(have gdbserver.Point) bool { return have == p })
}

// Current implements gdbserver.Target.
func (d *debugger) Current() gdbserver.Stop { return d.current }

// Go implements gdbserver.Target.
func (d *debugger) Go(m gdbserver.Motion, interrupted func() bool) (gdbserver.Stop, error) {
	d.setBreakpoints()
	d.watch.readValues(d)
	switch {
	case m.Back && m.Step:
		d.stepBack(arch.ThreadID(m.Thread))
	case m.Back:
		d.goBack(interrupted)
	default:
		d.goForward(m, interrupted)
	}
	if !m.Step {
		d.keepBreakpoints()
	}
	return d.current, nil
}

// keepBreakpoints keeps the breakpoints with which GDB had the run continue.
func (d *debugger) keepBreakpoints() {
	d.recent = d.recent[:0]
	for _, p := range d.points {
		if p.Kind <= gdbserver.HardwareBreak {
			d.recent = append(d.recent, p.Addr)
		}
	}
}

// goForward runs forwards.
func (d *debugger) goForward(m gdbserver.Motion, interrupted func() bool) {
	g := goal{from: d.here(), points: true, stepping: arch.NoThread, interrupted: interrupted}
	if m.Step {
		g.stepping = arch.ThreadID(m.Thread)
	}
	if d.advance(g) {
		return
	}
	if d.final != nil && !g.from.before(d.end) {
		d.current = *d.final
		return
	}
	d.returnToEnd()
}

// advance runs to a goal. It returns false if the run is over.
func (d *debugger) advance(g goal) bool {
	d.goal = g
	if d.task != nil {
		if d.debugged {
			d.watch.guardPages(d)
		}
		d.setHalt()
	}
	_, ok := d.resume()
	return ok
}

// returnToEnd keeps how the program ended, and returns to the position just before.
func (d *debugger) returnToEnd() {
	code, signal := d.m.Kernel().Status()
	if d.m.Outcome() != machine.OutcomeExit {
		code, signal = machine.ExitDeadlock, 0
	}
	d.final = &gdbserver.Stop{Reason: gdbserver.Exited, Code: code}
	if signal != 0 {
		d.final = &gdbserver.Stop{Reason: gdbserver.Killed, Signal: signal}
	}
	for i := len(d.decisions) - 1; i >= 0; i-- {
		if t := d.decisions[i]; t.debugged && t.instructions > 0 {
			d.end = position{uint64(i), int64(t.instructions) - 1}
			break
		}
	}
	d.goTo(d.end)
	d.current.Reason = gdbserver.AtEnd
}

// stepBack undoes the last instruction of a thread.
func (d *debugger) stepBack(t arch.ThreadID) {
	to, ok := d.previousInstruction(t)
	if !ok {
		d.toBeginning()
		return
	}
	values := slices.Clone(d.watch.values)
	d.goTo(to)
	if d.watch.values = values; d.watch.hasChanged(d) {
		d.current = d.watch.stop(d)
	}
}

// previousInstruction returns the position before the last instruction of a thread; false: it has
// not run yet.
func (d *debugger) previousInstruction(t arch.ThreadID) (position, bool) {
	here := d.here()
	if d.task != nil && d.task.ID() == t && d.n > 0 {
		return position{here.step, here.n - 1}, true
	}
	for i := int(here.step) - 1; i >= 0; i-- {
		if turn := d.decisions[i]; turn.thread == t && turn.instructions > 0 {
			return position{uint64(i), int64(turn.instructions) - 1}, true
		}
	}
	return position{}, false
}

func (d *debugger) toBeginning() {
	d.goTo(position{0, beforeQuantum})
	d.current.Reason = gdbserver.AtBeginning
}

// goBack returns to the last break- or watchpoint before here: it searches the run between each
// checkpoint and the next, from the last pair to the first.
func (d *debugger) goBack(interrupted func() bool) {
	to := d.here()
	for i := d.checkpointBefore(to); i >= 0; i-- {
		d.returnTo(i)
		d.advance(goal{to: &to, points: true, onlyLast: true, stepping: arch.NoThread})
		if f := d.goal.last; f != nil {
			d.goTo(f.back)
			d.current = f.stop
			return
		}
		to = position{d.checkpoints[i].step, beforeQuantum}
		if interrupted() {
			d.goTo(to)
			return
		}
	}
	d.toBeginning()
}

// goTo runs to a position that the run has been at before.
func (d *debugger) goTo(p position) {
	if !d.here().before(p) || d.m.Done() {
		d.returnTo(d.checkpointBefore(p))
	}
	d.advance(goal{to: &p, stepping: arch.NoThread})
}

// checkpointBefore returns the index of the last checkpoint before p, or of the first one.
func (d *debugger) checkpointBefore(p position) int {
	i := len(d.checkpoints) - 1
	for i > 0 && !(position{d.checkpoints[i].step, beforeQuantum}).before(p) {
		i--
	}
	return i
}

// returnTo returns the machine to a checkpoint.
func (d *debugger) returnTo(i int) {
	d.unwind()
	k := d.checkpoints[i]
	d.m.Restore(k.snapshot)
	d.step, d.instructions, d.task = k.step, k.instructions, nil
	d.watch.rights, d.watch.lifted = nil, false
	d.program = d.Program()
	d.watch.readValues(d)
	d.startRun()
}

// addCheckpoint adds a checkpoint here, between decisions.
func (d *debugger) addCheckpoint() {
	k := checkpoint{d.step, d.instructions, d.m.Snapshot()}
	at, have := slices.BinarySearchFunc(d.checkpoints, k, func(a, b checkpoint) int { return int(a.step) - int(b.step) })
	if have {
		k.snapshot.Release()
		return
	}
	d.checkpoints = slices.Insert(d.checkpoints, at, k)
	if len(d.checkpoints) < maxCheckpoints {
		return
	}
	d.spacing *= 2
	kept := d.checkpoints[:0]
	for i, k := range d.checkpoints {
		if i%2 == 0 {
			kept = append(kept, k)
		} else {
			k.snapshot.Release()
		}
	}
	d.checkpoints = kept
}

// considerCheckpoint adds a checkpoint if the last one is far away, or if the position that the
// run returns to is near.
func (d *debugger) considerCheckpoint() {
	if d.m.Done() {
		return
	}
	i := d.checkpointBefore(position{d.step, 0})
	far := d.instructions - d.checkpoints[i].instructions
	to := d.goal.to
	if far >= d.spacing || to != nil && !d.goal.onlyLast && to.step == d.step && far >= checkpointNear {
		d.addCheckpoint()
	}
}

// leave ends the debugging between two decisions; the machine may continue on its own.
func (d *debugger) leave() {
	d.points, d.recent = nil, nil
	d.setBreakpoints()
	d.watch.values = nil
	if d.task != nil && !d.m.Done() {
		d.advance(goal{to: &position{d.step + 1, beforeQuantum}, stepping: arch.NoThread})
	}
	d.unwind()
	d.m.RemoveHook(d)
	d.m.CPU().HaltAt(0)
	for _, k := range d.checkpoints {
		k.snapshot.Release()
	}
}

// trapSignal returns the signal of an instruction that could not be carried out, 0 if the kernel
// may handle it otherwise.
func trapSignal(s arch.Stop) int {
	switch {
	case s.Reason == arch.StopFault:
		return int(unix.SIGSEGV)
	case s.Reason != arch.StopException:
		return 0
	}
	switch s.Vector {
	case 0, 16, 19: // divide, x87, SSE
		return int(unix.SIGFPE)
	case 1, 3:
		return int(unix.SIGTRAP)
	case 6:
		return int(unix.SIGILL)
	}
	return int(unix.SIGSEGV)
}
