package recorder

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/symbolplace"
)

var (
	errPlace = errs.Define("place-unknown",
		"{place} is no place of a run: it must be one of {forms}",
		"The text after --from or --to, or in a trace, has none of these forms.",
		"Name a place in one of the forms; docs/traces.md explains them.")
	errNotReached = errs.Define("stretch-not-reached",
		"nothing is recorded: the run does not come to {place}",
		"The place where the stretch begins is after the run's end, or the program has no such function, port or thread.",
		"Name a place that the run comes to; a recording of the whole run shows what there is.")
	errEmpty = errs.Define("stretch-empty",
		"nothing is recorded: the run comes to {to} before it comes to {from}",
		"Both places are counted from the start of the run.",
		"Name places in the order in which the run comes to them.")
)

// Bounds finds the places of a stretch in one run. It has no effect on the run.
type Bounds struct {
	Nothing
	spec     Stretch
	from, to search
	cpu      emu.CPU
	// retired is how many instructions all threads have retired in quanta that are over.
	retired  func() uint64
	known    map[int32]bool
	requests requests
	halts    bool // at an instruction
	empty    bool
}

// search looks for one place.
type search struct {
	place   Place
	reached bool
	// time and instructions are where it was reached.
	time, instructions uint64
	seen               uint64                   // calls of the function
	code               map[arch.Addr]bool       // its addresses
	last               map[arch.ThreadID]uint64 // instructions of a thread at its last arrival, plus 1
}

// NewBounds makes the Bounds of a stretch.
func NewBounds(s Stretch) *Bounds {
	b := &Bounds{spec: s, known: map[int32]bool{}, requests: newRequests()}
	b.from, b.to = newSearch(s.From), newSearch(s.To)
	b.from.reached = s.From.Kind == NoPlace
	return b
}

func newSearch(p Place) search {
	return search{place: p, code: map[arch.Addr]bool{}, last: map[arch.ThreadID]uint64{}}
}

// SharedInSnapshot marks that a run of which a stretch is recorded does not return to snapshots.
func (b *Bounds) SharedInSnapshot() {}

// Attach gives the Bounds the processor, and a function that returns how many instructions all threads have retired in
// quanta that are over.
func (b *Bounds) Attach(cpu emu.CPU, retired func() uint64) { b.cpu, b.retired = cpu, retired }

// Phase implements Bounds.
func (b *Bounds) Phase() Phase {
	switch {
	case !b.from.reached:
		return BeforeStretch
	case !b.to.reached:
		return InStretch
	}
	return AfterStretch
}

// check returns why nothing is recorded of a run that is over, or nil.
func (b *Bounds) check() error {
	switch {
	case !b.from.reached:
		return errNotReached.New(b.spec.From.String())
	case b.empty:
		return errEmpty.New(b.spec.To.String(), b.spec.From.String())
	}
	return nil
}

// reach notes that a place is reached, after a number of instructions of the quantum.
func (b *Bounds) reach(r *Recorder, s *search, within uint64) {
	if s == &b.to && !b.from.reached {
		b.empty = true
	}
	s.reached, s.time, s.instructions = true, uint64(r.Time()), b.retired()+within
}

// Result is the recorded stretch of a run that is over, after so many cycles.
func (b *Bounds) Result(cycles uint64) *StretchResult {
	r := &StretchResult{Stretch: b.spec, Begin: b.from.time, End: cycles}
	last := b.retired()
	if b.to.reached {
		r.End, last = b.to.time, b.to.instructions
	}
	if why := b.check(); why != nil {
		r.Why = why.Error()
	} else {
		r.Instructions = last - b.from.instructions
	}
	return r
}

// StretchResult describes the recorded stretch of a run.
type StretchResult struct {
	Stretch
	// Begin and End are the cycles of virtual time at which it begins and ends, Instructions those of all threads in it.
	Begin        uint64 `json:"begin"`
	End          uint64 `json:"end"`
	Instructions uint64 `json:"instructions"`
	// Why is the reason why nothing was recorded, or empty.
	Why string `json:"why,omitempty"`
}

// String is the result as a sentence.
func (r *StretchResult) String() string {
	if r.Why != "" {
		return r.Why
	}
	return fmt.Sprintf("recorded the stretch from cycle %d to cycle %d, %d instructions", r.Begin, r.End, r.Instructions)
}

// each calls do for the places of a kind that are not reached yet.
func (b *Bounds) each(k PlaceKind, do func(s *search)) {
	for _, s := range []*search{&b.from, &b.to} {
		if s.place.Kind == k && !s.reached {
			do(s)
		}
	}
}

// Begin implements Recording: a thread is about to run.
func (b *Bounds) Begin(r *Recorder, t *kernel.Task) {
	b.each(AtTime, func(s *search) {
		if uint64(r.Time()) >= s.place.N {
			b.reach(r, s, 0)
		}
	})
	if pid := t.Process().PID(); b.seeksFunction() && !b.known[pid] {
		b.known[pid] = true
		for _, v := range t.Process().Space().VMAs() {
			b.addCode(&v)
		}
		b.setBreakpoints()
	}
}

func (b *Bounds) seeksFunction() bool {
	return b.from.place.Kind == AtCall || b.to.place.Kind == AtCall
}

func (b *Bounds) setBreakpoints() {
	var list []arch.Addr
	b.each(AtCall, func(s *search) {
		for at := range s.code {
			list = append(list, at)
		}
	})
	slices.Sort(list)
	b.cpu.SetDebugBreakpoints(slices.Compact(list))
}

// Issue implements Recording.
func (b *Bounds) Issue(r *Recorder, t *kernel.Task, e *event.Syscall) {
	b.requests.issue(r, t, e)
}

// Return implements Recording.
func (b *Bounds) Return(r *Recorder, t *kernel.Task, e *event.Syscall) {
	if linux.Failed(e.Result) {
		b.requests.forget(e.Thread)
		return
	}
	switch {
	case linux.Has(e.Number, linux.Executes):
		delete(b.known, t.Process().PID())
	case b.seeksFunction() && linux.Has(e.Number, linux.MapsFile) && e.Number != unix.SYS_MREMAP:
		if space := t.Process().Space(); space != nil {
			if v, ok := space.Find(arch.Addr(e.Result)); ok && b.addCode(&v) {
				b.setBreakpoints()
			}
		}
	}
	kind, port := b.requests.complete(r, t, e)
	if kind == NoPlace {
		return
	}
	b.each(kind, func(s *search) {
		if s.place.Port != 0 && s.place.Port != port {
			return
		}
		if s.seen++; s.seen == s.place.N {
			b.reach(r, s, 0)
		}
	})
}

// addCode adds the functions in the code of a mapping, and reports whether there are any.
func (b *Bounds) addCode(v *mm.VMA) (found bool) {
	b.each(AtCall, func(s *search) {
		for _, at := range symbolplace.FunctionIn(v, s.place.Function) {
			s.code[at], found = true, true
		}
	})
	return found
}

// Arrive notes where the thread that is loaded is, after a number of instructions of its quantum: when it begins to run,
// as a run does not stop at a breakpoint at its first instruction, and when it stops at a breakpoint.
func (b *Bounds) Arrive(r *Recorder, t *kernel.Task, within uint64) {
	b.each(AtCall, func(s *search) {
		at := r.Retired() + 1
		if !s.code[b.cpu.PC()] || s.last[t.ID()] == at {
			return
		}
		s.last[t.ID()] = at
		if s.seen++; s.seen == s.place.N {
			b.reach(r, s, within)
			b.setBreakpoints()
		}
	})
	halt := uint64(0)
	b.each(AtInstruction, func(s *search) {
		done := b.retired() + within
		if s.place.Thread != 0 {
			if s.place.Thread != t.ID() {
				return
			}
			done = r.Retired()
		}
		if done >= s.place.N {
			b.reach(r, s, within)
			return
		}
		if at := within + s.place.N - done; halt == 0 || at < halt {
			halt = at
		}
	})
	if b.halts || halt > 0 {
		b.halts = halt > 0
		b.cpu.HaltAt(halt)
	}
}
