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

// process is the one that is debugged; nil once it has ended, waited for or not.
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
	d.watch.sample(d)
	switch {
	case m.Back && m.Step:
		d.stepBack(arch.ThreadID(m.Thread))
	case m.Back:
		d.goBack(interrupted)
	default:
		d.goOn(m, interrupted)
	}
	if !m.Step {
		d.remember()
	}
	return d.current, nil
}

// remember keeps the breakpoints of a run that GDB let go.
func (d *debugger) remember() {
	d.recent = d.recent[:0]
	for _, p := range d.points {
		if p.Kind <= gdbserver.HardwareBreak {
			d.recent = append(d.recent, p.Addr)
		}
	}
}

// goOn runs forwards.
func (d *debugger) goOn(m gdbserver.Motion, interrupted func() bool) {
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
	d.finish()
}

// advance lets the run go with a goal; false: it is over.
func (d *debugger) advance(g goal) bool {
	d.goal = g
	if d.task != nil {
		if d.mine {
			d.watch.guard(d)
		}
		d.arm()
	}
	_, ok := d.resume()
	return ok
}

// finish notes how the program ended, and goes back to just before.
func (d *debugger) finish() {
	code, signal := d.m.Kernel().Status()
	if d.m.Outcome() != machine.OutcomeExit {
		code, signal = machine.ExitDeadlock, 0
	}
	d.final = &gdbserver.Stop{Reason: gdbserver.Exited, Code: code}
	if signal != 0 {
		d.final = &gdbserver.Stop{Reason: gdbserver.Killed, Signal: signal}
	}
	for i := len(d.turns) - 1; i >= 0; i-- {
		if t := d.turns[i]; t.mine && t.instructions > 0 {
			d.end = place{uint64(i), int64(t.instructions) - 1}
			break
		}
	}
	d.goTo(d.end)
	d.current.Reason = gdbserver.AtEnd
}

// stepBack undoes the last instruction of a thread.
func (d *debugger) stepBack(t arch.ThreadID) {
	to, ok := d.previous(t)
	if !ok {
		d.toBeginning()
		return
	}
	values := slices.Clone(d.watch.values)
	d.goTo(to)
	if d.watch.values = values; d.watch.changed(d) {
		d.current = d.watch.stop(d)
	}
}

// previous is the place before the last instruction of a thread; false: it has
// not run yet.
func (d *debugger) previous(t arch.ThreadID) (place, bool) {
	here := d.here()
	if d.task != nil && d.task.ID() == t && d.n > 0 {
		return place{here.step, here.n - 1}, true
	}
	for i := int(here.step) - 1; i >= 0; i-- {
		if turn := d.turns[i]; turn.thread == t && turn.instructions > 0 {
			return place{uint64(i), int64(turn.instructions) - 1}, true
		}
	}
	return place{}, false
}

func (d *debugger) toBeginning() {
	d.goTo(place{0, beforeSlice})
	d.current.Reason = gdbserver.AtBeginning
}

// goBack goes to the last break- or watchpoint before here: it looks at what is
// between each mark and the next, from behind.
func (d *debugger) goBack(interrupted func() bool) {
	to := d.here()
	for i := d.markBefore(to); i >= 0; i-- {
		d.returnTo(i)
		d.advance(goal{to: &to, points: true, note: true, stepping: arch.NoThread})
		if f := d.goal.noted; f != nil {
			d.goTo(f.back)
			d.current = f.stop
			return
		}
		to = place{d.marks[i].step, beforeSlice}
		if interrupted() {
			d.goTo(to)
			return
		}
	}
	d.toBeginning()
}

// goTo takes the run to a place that it has been at before.
func (d *debugger) goTo(p place) {
	if !d.here().before(p) || d.m.Done() {
		d.returnTo(d.markBefore(p))
	}
	d.advance(goal{to: &p, stepping: arch.NoThread})
}

// markBefore is the index of the last mark that is not behind p, and before it
// if there is one.
func (d *debugger) markBefore(p place) int {
	i := len(d.marks) - 1
	for i > 0 && !(place{d.marks[i].step, beforeSlice}).before(p) {
		i--
	}
	return i
}

// returnTo makes the machine what it was at a mark.
func (d *debugger) returnTo(i int) {
	d.unwind()
	k := d.marks[i]
	d.m.Restore(k.snapshot)
	d.step, d.instructions, d.task = k.step, k.instructions, nil
	d.watch.rights, d.watch.lifted = nil, false
	d.program = d.Program()
	d.watch.sample(d)
	d.start()
}

// mark makes a mark here, between decisions.
func (d *debugger) mark() {
	k := mark{d.step, d.instructions, d.m.Snapshot()}
	at, have := slices.BinarySearchFunc(d.marks, k, func(a, b mark) int { return int(a.step) - int(b.step) })
	if have {
		k.snapshot.Release()
		return
	}
	d.marks = slices.Insert(d.marks, at, k)
	if len(d.marks) < maxMarks {
		return
	}
	d.spacing *= 2
	kept := d.marks[:0]
	for i, k := range d.marks {
		if i%2 == 0 {
			kept = append(kept, k)
		} else {
			k.snapshot.Release()
		}
	}
	d.marks = kept
}

// consider makes a mark if the last one is far away, or the place that the run
// is going back to is near.
func (d *debugger) consider() {
	if d.m.Done() {
		return
	}
	i := d.markBefore(place{d.step, 0})
	far := d.instructions - d.marks[i].instructions
	to := d.goal.to
	if far >= d.spacing || to != nil && !d.goal.note && to.step == d.step && far >= markNear {
		d.mark()
	}
}

// leave ends the debugging between two decisions; the machine may go on by itself.
func (d *debugger) leave() {
	d.points, d.recent = nil, nil
	d.setBreakpoints()
	d.watch.values = nil
	if d.task != nil && !d.m.Done() {
		d.advance(goal{to: &place{d.step + 1, beforeSlice}, stepping: arch.NoThread})
	}
	d.unwind()
	d.m.RemoveHook(d)
	d.m.CPU().HaltAt(0)
	for _, k := range d.marks {
		k.snapshot.Release()
	}
}

// trapSignal is the signal of an instruction that could not be carried out, 0
// if the kernel may have something else in mind.
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
