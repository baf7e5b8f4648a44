package heddle

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Probe finds out, while a recorded run is repeated, how many instructions
// threads have retired when they come to given instructions after given numbers
// of branches.
type Probe struct {
	recorder.Nothing
	wanted map[probed]*finding
	pcs    []event.Addr
	// arrivals are, by thread and instruction, after how many instructions the thread
	// came there, and arrived where it did so last.
	arrivals map[probedPlace][]uint64
	arrived  map[event.ThreadID]probed

	cpu     *emu.CPU
	counted uint64 // by the engine, when the thread began to run
}

// probed is a dynamic instruction.
type probed struct {
	thread   event.ThreadID
	pc       event.Addr
	branches uint64
}

// probedPlace is an instruction of a thread.
type probedPlace struct {
	thread event.ThreadID
	pc     event.Addr
}

// finding is when the thread came there first, and last: an instruction that
// repeats is come to several times.
type finding struct {
	first, last uint64
	found       bool
}

// NewProbe makes a Probe that looks for nothing.
func NewProbe() *Probe {
	return &Probe{wanted: map[probed]*finding{}, arrivals: map[probedPlace][]uint64{}, arrived: map[event.ThreadID]probed{}}
}

// Add has it look for the instruction at pc that a thread executes after it has
// gone through so many branches.
func (p *Probe) Add(t event.ThreadID, pc event.Addr, branches uint64) {
	p.wanted[probed{t, pc, branches}] = &finding{}
	p.pcs = append(p.pcs, pc)
}

// Len is how many instructions it looks for.
func (p *Probe) Len() int { return len(p.wanted) }

// Found returns how many instructions the thread had retired when it came to the
// instruction first, and last.
func (p *Probe) Found(t event.ThreadID, pc event.Addr, branches uint64) (first, last uint64, ok bool) {
	f := p.wanted[probed{t, pc, branches}]
	if f == nil {
		return 0, 0, false
	}
	return f.first, f.last, f.found
}

// Occurrence is how often a thread came to an instruction that was looked for between
// two counts of its instructions, the second included.
func (p *Probe) Occurrence(t event.ThreadID, pc event.Addr, from, to uint64) uint64 {
	all := p.arrivals[probedPlace{t, pc}]
	first, _ := slices.BinarySearch(all, from)
	behind, _ := slices.BinarySearch(all, to+1)
	return uint64(behind - first)
}

// SharedInSnapshot marks that a probe is no part of the machine's state.
func (p *Probe) SharedInSnapshot() {}

// prepare sets up the engine.
func (p *Probe) prepare(cpu *emu.CPU) error {
	if err := cpu.CountBranches(); err != nil {
		return errRecording.Wrap(err)
	}
	slices.Sort(p.pcs)
	p.pcs = slices.Compact(p.pcs)
	cpu.SetBreakpoints(p.pcs)
	p.cpu = cpu
	return nil
}

// Begin implements recorder.Recording.
func (p *Probe) Begin(r *recorder.Recorder, _ *kernel.Task) {
	p.counted = p.cpu.CountedBranches()
	p.look(r) // a run does not stop at a breakpoint at its first instruction
}

// Stopped implements recorder.Recording.
func (p *Probe) Stopped(r *recorder.Recorder, _ *kernel.Task, s emu.Stop) {
	count := p.cpu.CountedBranches()
	r.AddBranches(count - p.counted)
	p.counted = count
	if s.Reason == emu.StopBreakpoint {
		p.look(r)
	}
}

// look notes that the thread is at an instruction that is looked for.
func (p *Probe) look(r *recorder.Recorder) {
	var regs emu.Regs
	p.cpu.Regs(&regs)
	at := r.At()
	if here := (probed{at.Thread, event.Addr(regs.RIP), at.Branches}); p.arrived[at.Thread] != here {
		if _, looked := slices.BinarySearch(p.pcs, here.pc); looked {
			p.arrived[at.Thread] = here
			k := probedPlace{here.thread, here.pc}
			p.arrivals[k] = append(p.arrivals[k], at.Instructions)
		}
	}
	f := p.wanted[probed{at.Thread, event.Addr(regs.RIP), at.Branches}]
	if f == nil {
		return
	}
	if !f.found {
		f.first, f.found = at.Instructions, true
	}
	f.last = at.Instructions
}
