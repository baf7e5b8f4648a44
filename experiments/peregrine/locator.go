package peregrine

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var errLocator = errs.Define("instructions-cannot-be-located",
	"the instructions of the constraints cannot be located in the recorded run",
	"The engine does not count branches; the rest of the sentence is its own.",
	"Report the sentence: this is a defect of heddle.")

// Locator finds out, while a recorded run is repeated, how many instructions
// threads have retired when they reach given instructions after given numbers
// of branches.
type Locator struct {
	machine.NoHook
	recorder.Nothing
	wanted map[probed]*finding
	pcs    []arch.Addr
	// arrivals are, by thread and instruction, after how many instructions the thread
	// came there, and arrived where it did so last.
	arrivals map[probedPlace][]uint64
	arrived  map[hybrid.Life]probed
	// ended counts the ends of threads of an id.
	ended map[arch.ThreadID]int

	cpu     emu.CPU
	counted uint64 // by the engine, when the thread began to run
}

// probed is a dynamic instruction.
type probed struct {
	thread   hybrid.Life
	pc       arch.Addr
	branches uint64
}

// probedPlace is an instruction of a thread.
type probedPlace struct {
	thread hybrid.Life
	pc     arch.Addr
}

// finding is when the thread reached the instruction first, and last: one that
// repeats is reached several times.
type finding struct {
	first, last uint64
	found       bool
}

// NewLocator makes a Locator that looks for nothing.
func NewLocator() *Locator {
	return &Locator{wanted: map[probed]*finding{}, arrivals: map[probedPlace][]uint64{}, arrived: map[hybrid.Life]probed{}, ended: map[arch.ThreadID]int{}}
}

// Add has it look for the instruction at pc that a thread executes after this
// number of branches.
func (p *Locator) Add(t hybrid.Life, pc arch.Addr, branches uint64) {
	p.wanted[probed{t, pc, branches}] = &finding{}
	p.pcs = append(p.pcs, pc)
}

// Len is how many instructions it looks for.
func (p *Locator) Len() int { return len(p.wanted) }

// Found returns how many instructions the thread had retired when it reached the
// instruction first, and last.
func (p *Locator) Found(t hybrid.Life, pc arch.Addr, branches uint64) (first, last uint64, ok bool) {
	f := p.wanted[probed{t, pc, branches}]
	if f == nil {
		return 0, 0, false
	}
	return f.first, f.last, f.found
}

// Occurrence is how often a thread reached an instruction that was looked for between
// two counts of its instructions, the second included.
func (p *Locator) Occurrence(t hybrid.Life, pc arch.Addr, from, to uint64) uint64 {
	all := p.arrivals[probedPlace{t, pc}]
	first, _ := slices.BinarySearch(all, from)
	after, _ := slices.BinarySearch(all, to+1)
	return uint64(after - first)
}

// SharedInSnapshot marks that a locator is no part of the machine's state.
func (p *Locator) SharedInSnapshot() {}

// Prepare implements machine.Hook.
func (p *Locator) Prepare(m *machine.Machine) error {
	if err := m.CPU().CountBranches(); err != nil {
		return errLocator.Wrap(err)
	}
	slices.Sort(p.pcs)
	p.pcs = slices.Compact(p.pcs)
	p.cpu = m.CPU()
	m.AddBreakpoints(p.pcs)
	m.AddRecording(p)
	return nil
}

// Begin implements recorder.Recording.
func (p *Locator) Begin(r *recorder.Recorder, _ *kernel.Task) {
	p.counted = p.cpu.CountedBranches()
	p.look(r) // a run does not stop at a breakpoint at its first instruction
}

// Exit implements recorder.Recording.
func (p *Locator) Exit(_ *recorder.Recorder, e *event.Exit) { p.ended[e.Thread]++ }

// Stopped implements recorder.Recording.
func (p *Locator) Stopped(r *recorder.Recorder, _ *kernel.Task, s arch.Stop) {
	count := p.cpu.CountedBranches()
	r.AddBranches(count - p.counted)
	p.counted = count
	if s.Reason == arch.StopBreakpoint {
		p.look(r)
	}
}

// look notes that the thread is at an instruction that is looked for.
func (p *Locator) look(r *recorder.Recorder) {
	var regs arch.Regs
	p.cpu.Regs(&regs)
	at := r.At()
	here := probed{hybrid.Life{ID: at.Thread, Number: p.ended[at.Thread]}, arch.Addr(regs.RIP), at.Branches}
	if p.arrived[here.thread] != here {
		if _, looked := slices.BinarySearch(p.pcs, here.pc); looked {
			p.arrived[here.thread] = here
			k := probedPlace{here.thread, here.pc}
			p.arrivals[k] = append(p.arrivals[k], at.Instructions)
		}
	}
	f := p.wanted[here]
	if f == nil {
		return
	}
	if !f.found {
		f.first, f.found = at.Instructions, true
	}
	f.last = at.Instructions
}
