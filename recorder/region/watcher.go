package region

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Result is the measurement of a region.
type Result struct {
	// Region is the text of its Spec.
	Region string `json:"region"`
	// Known reports that the program has the functions or marks that bound it, and Entered is how many times
	// it was entered.
	Known   bool   `json:"known"`
	Entered uint64 `json:"entered"`
	// Cycles is the virtual time in it, and Instructions those of all threads meanwhile.
	Cycles       uint64 `json:"cycles"`
	Instructions uint64 `json:"instructions"`
	// Begin and End are the virtual times at which it was entered first and left last.
	Begin uint64 `json:"begin"`
	End   uint64 `json:"end"`
	// Open reports that it was not left before the end of the run.
	Open bool `json:"open"`
	// Jumped is how many calls of the function did not return: they were left by an exception or longjmp, which is
	// noticed at the thread's next stop.
	Jumped uint64 `json:"jumped"`
}

// String is the result as a sentence.
func (r *Result) String() string {
	times := "once"
	if r.Entered > 1 {
		times = fmt.Sprintf("%d times", r.Entered)
	}
	open := ""
	if r.Open {
		open = "; it was not left before the end of the run"
	}
	if r.Jumped > 0 {
		open += fmt.Sprintf("; %d of its calls did not return, so their ends are not exact", r.Jumped)
	}
	return fmt.Sprintf("region %s: entered %s, %d cycles, %d instructions%s", r.Region, times, r.Cycles, r.Instructions, open)
}

// Watcher is the recording of a region. It observes one run, whose machine calls its methods and those of a
// recorder.Recording.
type Watcher struct {
	recorder.Nothing
	// OnState, if it is set before the run, is called when a thread executes heddle_state of heddle.h.
	OnState func(t *kernel.Task, addr arch.Addr, size uint64, name string)

	spec   Spec
	result Result
	r      *recorder.Recorder
	cpu    emu.CPU
	// retired is how many instructions all threads have retired in quanta that are over.
	retired func() uint64

	places  map[arch.Addr]purpose
	known   map[int32]bool
	threads map[arch.ThreadID]*inside
	alive   int
	depth   int // how many times threads have entered the region and not left it
	begin   moment
	total   moment // of the intervals that are over
}

// inside is the state of a thread.
type inside struct {
	frames []frame // calls of the function, the innermost last
	last   uint64  // instructions of the thread at its last arrival, plus 1
}

// frame is a call that is under way.
type frame struct {
	returnsTo arch.Addr
	stack     uint64 // after the return
}

// maxStateName is how many bytes of the name of declared state are read.
const maxStateName = 64

// addressBytes is the size of a return address.
const addressBytes = 8

// moment is a point in a run.
type moment struct{ cycles, instructions uint64 }

// Watch makes the Watcher of a region.
func Watch(s Spec) *Watcher {
	return &Watcher{
		spec: s, result: Result{Region: s.String(), Known: s.Kind == Auto}, places: map[arch.Addr]purpose{}, known: map[int32]bool{},
		threads: map[arch.ThreadID]*inside{},
	}
}

// SharedInSnapshot marks that a Watcher is no part of the machine's state.
func (w *Watcher) SharedInSnapshot() {}

// Attach gives the Watcher the processor, and a function that returns how many instructions all threads have retired in
// quanta that are over.
func (w *Watcher) Attach(cpu emu.CPU, retired func() uint64) { w.cpu, w.retired = cpu, retired }

// IsInside reports whether some thread is in the region now.
func (w *Watcher) IsInside() bool { return w.depth > 0 }

// Depth is how many times threads have entered the region and not left it.
func (w *Watcher) Depth() int { return w.depth }

// Result returns the measurement of a run that is over. A region that is open ends with the run.
func (w *Watcher) Result() *Result {
	if w.depth > 0 {
		w.depth, w.result.Open = 0, true
		w.endInterval(w.now(0))
	}
	r := w.result
	r.Cycles, r.Instructions = w.total.cycles, w.total.instructions
	return &r
}

var (
	errUnknown = errs.Define("region-unknown",
		"the region {region} cannot be measured: the program has no such function or mark",
		"No file that the program has mapped defines the function, or has the instruction of heddle_region_begin or heddle_region_end. Functions that the compiler has inlined, or that are stripped, have no symbol.",
		"Name a function that nm lists, compile with heddle.h's marks, or use the region auto.")
	errNotEntered = errs.Define("region-not-entered",
		"the region {region} cannot be measured: no thread has entered it",
		"The program did not come to the region's beginning, or, with auto, had one thread only.",
		"Run the program with arguments with which it gets there, or name another region.")
)

// Check returns why there is nothing to report of a run that is over; nil: the region was entered.
func (w *Watcher) Check() error {
	switch {
	case !w.result.Known:
		return errUnknown.New(w.result.Region)
	case w.result.Entered == 0:
		return errNotEntered.New(w.result.Region)
	}
	return nil
}

// now is the present moment; within is how many instructions the thread has retired in its quantum.
func (w *Watcher) now(within uint64) moment {
	return moment{uint64(w.r.Time()), w.retired() + within}
}

// enter notes that a thread enters the region.
func (w *Watcher) enter(at moment) {
	w.depth++
	if w.depth > 1 {
		return
	}
	w.begin = at
	if w.result.Entered == 0 {
		w.result.Begin = at.cycles
	}
	w.result.Entered++
}

// leave notes that a thread leaves it.
func (w *Watcher) leave(at moment) {
	if w.depth == 0 {
		return
	}
	if w.depth--; w.depth == 0 {
		w.endInterval(at)
	}
}

// endInterval adds the interval that ends. Clocks of cores may differ by less than a quantum.
func (w *Watcher) endInterval(at moment) {
	w.total.cycles += max(at.cycles, w.begin.cycles) - w.begin.cycles
	w.total.instructions += max(at.instructions, w.begin.instructions) - w.begin.instructions
	w.result.End = max(w.result.End, at.cycles)
}

// Begin implements recorder.Recording: it reads the files of a process that is new, or has another program.
func (w *Watcher) Begin(r *recorder.Recorder, t *kernel.Task) {
	w.r = r
	pid := t.Process().PID()
	if w.known[pid] || w.spec.Kind == Auto {
		return
	}
	w.known[pid] = true
	for _, v := range t.Process().Space().VMAs() {
		maps.Copy(w.places, w.placesIn(&v))
	}
	w.setBreakpoints()
}

// Return implements recorder.Recording: it reads files that are mapped.
func (w *Watcher) Return(_ *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	switch {
	case w.spec.Kind == Auto || linux.Failed(e.Result):
	case linux.Has(e.Number, linux.Executes):
		delete(w.known, t.Process().PID())
	case linux.Has(e.Number, linux.MapsFile):
		if space := t.Process().Space(); space != nil {
			if v, ok := space.Find(arch.Addr(e.Result)); ok {
				if places := w.placesIn(&v); len(places) > 0 {
					maps.Copy(w.places, places)
					w.setBreakpoints()
				}
			}
		}
	}
}

func (w *Watcher) setBreakpoints() {
	begin, end := false, w.spec.Kind == Function
	for _, p := range w.places {
		begin, end = begin || p&begins != 0, end || p&ends != 0
	}
	w.result.Known = begin && end
	w.cpu.SetDebugBreakpoints(sortedPlaces(w.places))
}

// Start implements recorder.Recording.
func (w *Watcher) Start(r *recorder.Recorder, _ *kernel.Task, _ *event.Start) {
	w.r = r
	w.alive++
	if w.spec.Kind == Auto && w.alive == 2 && w.depth == 0 {
		if w.result.Entered > 0 {
			w.depth = 1 // the region continues: it ends with the last such end
			w.total = moment{}
			return
		}
		w.enter(w.now(0))
	}
}

// Exit implements recorder.Recording.
func (w *Watcher) Exit(r *recorder.Recorder, e *event.Exit) {
	w.r = r
	w.alive--
	if w.spec.Kind == Auto {
		if w.alive == 1 {
			w.leave(w.now(0))
		}
		return
	}
	t := w.threads[e.Thread]
	if t == nil {
		return
	}
	delete(w.threads, e.Thread)
	for range t.frames {
		w.leave(w.now(0))
	}
}

// Arrive notes where the thread that is loaded is, after a number of instructions of its quantum: when it begins to run, as a run does
// not stop at a breakpoint at its first instruction, and when it stops at a breakpoint. Logs of the accesses before have been
// drained.
func (w *Watcher) Arrive(task *kernel.Task, within uint64) {
	if w.spec.Kind == Auto {
		return
	}
	pc := w.cpu.PC()
	p := w.places[pc]
	t := w.threads[task.ID()]
	if p == 0 && (t == nil || len(t.frames) == 0) {
		return
	}
	if t == nil {
		t = &inside{}
		w.threads[task.ID()] = t
	}
	var regs arch.Regs
	w.cpu.Regs(&regs)
	w.endCalls(task, t, &regs, within)
	at := w.r.Retired() + 1
	if p == 0 || t.last == at {
		return // or it has been here since it stopped
	}
	t.last = at
	if p&declares != 0 {
		name := make([]byte, maxStateName)
		name = name[:task.Process().Space().Peek(arch.Addr(regs.GPR[arch.RDX]), name)]
		name, _, _ = bytes.Cut(name, []byte{0})
		w.OnState(task, arch.Addr(regs.GPR[arch.RDI]), regs.GPR[arch.RSI], strings.ToValidUTF8(string(name), "?"))
	}
	if p&ends != 0 {
		w.leave(w.now(within))
	}
	switch {
	case p&begins == 0:
	case w.spec.Kind == Function:
		w.call(task, t, regs.GPR[arch.RSP], within)
	default:
		w.enter(w.now(within))
	}
}

// call notes the entry of the function: its return is awaited.
func (w *Watcher) call(task *kernel.Task, t *inside, stack uint64, within uint64) {
	back, errno := task.Process().Space().ReadU64(arch.Addr(stack))
	if errno != 0 {
		return
	}
	t.frames = append(t.frames, frame{arch.Addr(back), stack + addressBytes})
	w.enter(w.now(within))
	if w.places[arch.Addr(back)]&returns == 0 {
		w.places[arch.Addr(back)] |= returns
		w.cpu.SetDebugBreakpoints(sortedPlaces(w.places))
	}
}

// endCalls ends the calls that are over where the thread is: its stack has nothing of theirs, or another call's
// return address in place of theirs.
func (w *Watcher) endCalls(task *kernel.Task, t *inside, regs *arch.Regs, within uint64) {
	stack := regs.GPR[arch.RSP]
	for n := len(t.frames); n > 0; n-- {
		f := &t.frames[n-1]
		if stack < f.stack {
			back, errno := task.Process().Space().ReadU64(arch.Addr(f.stack - addressBytes))
			if errno != 0 || arch.Addr(back) == f.returnsTo {
				return
			}
		}
		if stack != f.stack || arch.Addr(regs.RIP) != f.returnsTo {
			w.result.Jumped++
		}
		t.frames = t.frames[:n-1]
		w.leave(w.now(within))
	}
}
