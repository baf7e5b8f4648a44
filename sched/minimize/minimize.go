package minimize

import (
	"context"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Outcome is the result of a run.
type Outcome struct {
	// Fails reports that the run failed in the way that is searched for.
	Fails bool
	// Schedule is the schedule that the run really had.
	Schedule Schedule
	// Recording is kept if the run is the best.
	Recording []byte
	// Drifted is the first step that ended at another place than its PC (Follower.Drifted); -1
	// without one.
	Drifted int
}

// Try carries out a schedule. An error ends the search.
type Try func(context.Context, Schedule) (Outcome, error)

// Options tune a search.
type Options struct {
	// Runs bounds how many schedules are tried; 0 means no bound.
	Runs int
	// Progress, if set, is called after each run with the number of runs and the cost of the best
	// so far.
	Progress func(runs int, best Cost)
	// Probe, when set, carries out a schedule and returns how far the place is
	// where a step ended; false if it is not found. See Follower.Probe.
	Probe func(ctx context.Context, s Schedule, step int) (off int64, found bool, err error)
}

// Result is the result of a search.
type Result struct {
	Schedule Schedule
	// Recording is that of the run with this schedule; nil if none was better than
	// the schedule that the search began with.
	Recording []byte
	Runs      int
	// Complete reports that the search was not cut short (invariant 2), and Reproduced that the
	// first schedule failed.
	Complete, Reproduced bool
}

// Minimize looks for a schedule that fails at the least cost. It begins with one
// that failed. When ctx is done or the budget is used up it returns the best so
// far; the error is that of a try.
func Minimize(ctx context.Context, begin Schedule, try Try, o Options) (Result, error) {
	s := &search{ctx: ctx, try: try, options: o, best: begin, seen: map[uint64]bool{}}
	s.result.Reproduced = s.startSearch(begin)
	if s.result.Reproduced {
		s.dropPieces()
		s.trimSteps()
		s.shortenSteps()
		s.tryNeighbours()
	}
	s.result.Schedule = s.best
	s.result.Complete = !s.isOver()
	return s.result, s.err
}

// search is one call of Minimize.
type search struct {
	ctx     context.Context
	try     Try
	options Options
	best    Schedule
	seen    map[uint64]bool // schedules that were tried, by digest
	result  Result
	err     error
}

// isOver reports whether no more runs may be made.
func (s *search) isOver() bool {
	return s.err != nil || s.ctx.Err() != nil || s.options.Runs > 0 && s.result.Runs >= s.options.Runs
}

// runOnce carries out a schedule that was not tried yet.
func (s *search) runOnce(c Schedule) Outcome {
	if s.isOver() || s.seen[scheduleDigest(c)] {
		return Outcome{}
	}
	s.seen[scheduleDigest(c)] = true
	out, err := s.try(s.ctx, c)
	if err != nil {
		if s.ctx.Err() == nil {
			s.err = err
		}
		return Outcome{}
	}
	s.result.Runs++
	return out
}

// corrections is how many steps of a schedule that does not fail are moved to the
// places where they ended before the schedule was changed.
const corrections = 3

// runCorrected carries out a schedule, and again as long as a step has drifted.
func (s *search) runCorrected(c Schedule) Outcome {
	o := s.runOnce(c)
	for range corrections {
		if o.Fails || o.Schedule == nil || o.Drifted < 0 || s.options.Probe == nil || s.isOver() {
			break
		}
		off, found, err := s.options.Probe(s.ctx, c, o.Drifted)
		if err != nil {
			if s.ctx.Err() == nil {
				s.err = err
			}
			break
		}
		s.result.Runs++
		if !found || off == 0 {
			break
		}
		c = shiftSteps(c, o.Drifted, off)
		o = s.runOnce(c)
	}
	return o
}

// keepBest makes a run the best so far.
func (s *search) keepBest(o Outcome) { s.best, s.result.Recording = o.Schedule, o.Recording }

// reportProgress reports progress.
func (s *search) reportProgress() {
	if s.options.Progress != nil {
		s.options.Progress(s.result.Runs, s.best.Cost())
	}
}

// startSearch tries the schedule with every thread on a core of its own, and as it is.
func (s *search) startSearch(begin Schedule) bool {
	for _, c := range []Schedule{spreadOverCores(begin), begin} {
		if o := s.runOnce(c); o.Fails && !begin.Cost().Less(o.Schedule.Cost()) {
			s.keepBest(o)
			s.reportProgress()
			return true
		}
	}
	return false
}

// spreadOverCores leaves each thread on the core where it first ran, and gives threads that
// would share one the others in turn, as far as there are.
func spreadOverCores(s Schedule) Schedule {
	cores := arch.CoreID(0)
	for i := range s {
		cores = max(cores, s[i].Core+1)
	}
	c := s.deepClone()
	home := map[arch.ThreadID]arch.CoreID{}
	for i := range c {
		core, known := home[c[i].Thread]
		if !known {
			core = arch.CoreID(len(home)) % cores
			home[c[i].Thread] = core
		}
		c[i].Core = core
	}
	return c
}

// acceptIfBetter keeps a schedule if it fails at a smaller cost.
func (s *search) acceptIfBetter(c Schedule) bool {
	o := s.runCorrected(c)
	better := o.Fails && o.Schedule.Cost().Less(s.best.Cost())
	if better {
		s.keepBest(o)
	}
	s.reportProgress()
	return better
}

// dropPieces drops long pieces, then shorter ones: delta debugging.
func (s *search) dropPieces() {
	for size := len(s.best); size > 1 && !s.isOver(); size = (size + 1) / 2 {
		for from := 0; from < len(s.best) && !s.isOver(); {
			to := min(from+size, len(s.best))
			if !s.acceptIfBetter(withoutSteps(s.best, from, to)) && !s.acceptIfBetter(withStepsGathered(s.best, from, to)) && !s.acceptIfBetter(withoutHolds(s.best, from, to)) {
				from += size
			}
		}
		if size == 2 {
			break
		}
	}
}

// trims is how many lengths trim tries to take off a step.
const trims = 40

// trimSteps lets threads stop earlier whose stores wait after delayed ones, before they make as
// many.
func (s *search) trimSteps() {
	for again := true; again && !s.isOver(); {
		again = false
		for _, d := range s.best.Delays() {
			if len(s.best[d.From].Waiting) == 0 {
				continue
			}
			for n := range trims {
				if c, ok := withStepTrimmed(s.best, d, n); ok && s.acceptIfBetter(c) {
					again = true
					break
				}
			}
			if again {
				break
			}
		}
	}
}

// longStep is the number of instructions from which a step may be a loop that waits, and shortLengths are those
// to which shortenSteps cuts it.
const longStep = 5000

var shortLengths = [...]uint64{300, 2400}

// shortenSteps cuts long steps: a thread that waits in a loop for another one need not do so for many rounds. If the run then
// does not fail, runCorrected has the step end at the instruction at which it ended before, in another round.
func (s *search) shortenSteps() {
	for i := 0; i < len(s.best) && !s.isOver(); i++ {
		for _, length := range shortLengths {
			if by := int64(length) - int64(s.best.lengthOf(i)); s.best.lengthOf(i) >= longStep && !s.best[i].Acts {
				if o := s.runCorrected(shiftSteps(s.best, i, by)); o.Fails && !s.best.Cost().Less(o.Schedule.Cost()) {
					s.keepBest(o)
				}
				s.reportProgress()
			}
		}
	}
}

// lengthOf is the number of instructions of a step.
func (s Schedule) lengthOf(i int) uint64 {
	for k := i - 1; k >= 0; k-- {
		if s[k].Thread == s[i].Thread {
			return s[i].To - min(s[k].To, s[i].To)
		}
	}
	return s[i].To
}

// tryNeighbours tries every neighbour until none is better.
func (s *search) tryNeighbours() {
	for again := true; again && !s.isOver(); {
		again = false
		for i := 0; i < countNeighbours(s.best) && !s.isOver(); {
			if s.acceptIfBetter(makeNeighbour(s.best, i)) {
				again = true
			} else {
				i++
			}
		}
	}
}

// Neighbours lists the schedules that are one change away from s: without one of its steps, which
// leaves the instructions of that step to the thread's next step; with a thread's next step at once
// instead of later; without a delay; with one store less in a delay of several; with the next store
// delayed instead of another; with a delay that ends a step earlier.
func (s Schedule) Neighbours() []Schedule {
	var all []Schedule
	for i := range countNeighbours(s) {
		all = append(all, makeNeighbour(s, i))
	}
	return all
}

// changes is how many changes of a delay are tried.
const changes = 4

func countNeighbours(s Schedule) int { return 2*len(s) + changes*len(s.Delays()) }

func makeNeighbour(s Schedule, i int) Schedule {
	if i < len(s) {
		return withoutSteps(s, i, i+1)
	}
	if i -= len(s); i < len(s) {
		return withStepPulled(s, i)
	}
	i -= len(s)
	switch d := s.Delays()[i/changes]; i % changes {
	case 0:
		return withFewerHeld(s, d, d.From, 0)
	case 1:
		return withFewerHeld(s, d, d.From, d.Stores-1)
	case 2:
		return withNextDelayed(s, d)
	default:
		return withFewerHeld(s, d, d.Last, 0)
	}
}

// withoutSteps leaves out steps.
func withoutSteps(s Schedule, from, to int) Schedule {
	return append(s[:from].deepClone(), s[to:].deepClone()...)
}

// withStepPulled lets the thread of a step do its next step at once.
func withStepPulled(s Schedule, i int) Schedule {
	for k := i + 1; k < len(s); k++ {
		if s[k].Thread == s[i].Thread {
			c := withoutSteps(s, k, k+1)
			c[i].setEnd(&s[k])
			return c
		}
	}
	return s
}

// withStepsGathered lets each thread do all of its steps in a piece of the schedule at the
// place of the first.
func withStepsGathered(s Schedule, from, to int) Schedule {
	c := s[:from].deepClone()
	first := map[arch.ThreadID]int{} // for look-up only
	for i := from; i < to; i++ {
		if k, ok := first[s[i].Thread]; ok {
			c[k].setEnd(&s[i])
			continue
		}
		first[s[i].Thread] = len(c)
		c = append(c, s[i])
	}
	return append(c, s[to:].deepClone()...)
}

// withStepTrimmed ends the step in which delayed stores were made earlier: by half of it,
// and by seven, six and five eighths of that, all halved n/4 times.
func withStepTrimmed(s Schedule, d Delay, n int) (Schedule, bool) {
	last, from := -1, uint64(0)
	for i := range d.From {
		if s[i].Thread == d.Thread {
			if last >= 0 {
				from = s[last].To
			}
			last = i
		}
	}
	if last < 0 {
		return nil, false
	}
	off := (s[last].To - min(s[last].To, from)) / 16 * uint64(8-n%4) >> (n / 4)
	c := s.deepClone()
	c[last].setEnd(&Step{To: s[last].To - off})
	return c, off > 0
}

// withoutHolds holds no store back in a piece of the schedule.
func withoutHolds(s Schedule, from, to int) Schedule {
	c := s.deepClone()
	for i := from; i < to; i++ {
		c[i].Hold = nil
	}
	return c
}

// withFewerHeld holds back at most the given number of stores of a delay, from a step on.
func withFewerHeld(s Schedule, d Delay, from, most int) Schedule {
	c := s.deepClone()
	for i := from; i <= d.Last; i++ {
		var rest []Hold
		for _, h := range c[i].Hold {
			if h.Store == d.Store {
				h.Newest = min(h.Newest, most)
			}
			if h.Newest > 0 {
				rest = append(rest, h)
			}
		}
		c[i].Hold = rest
	}
	return c
}

// withNextDelayed commits the stores of a delay and holds back the next one of the thread
// instead.
func withNextDelayed(s Schedule, d Delay) Schedule {
	for _, next := range s[d.From].Waiting {
		if next.Thread != d.Thread || next.Store == d.Store {
			continue
		}
		c := withFewerHeld(s, d, d.From, 0)
		for i := d.From; i <= d.Last; i++ {
			if c[i].Thread != d.Thread && c[i].heldStores(next.Store) == 0 {
				c[i].Hold = append(c[i].Hold, next)
			}
		}
		return c
	}
	return s
}

// scheduleDigest identifies a schedule.
func scheduleDigest(s Schedule) uint64 {
	var b []byte
	add := func(n uint64) { b = binary.AppendUvarint(b, n) }
	for i := range s {
		x := &s[i]
		add(uint64(x.Thread))
		add(uint64(x.Core))
		add(x.To)
		if x.Acts {
			add(1)
		} else {
			add(0)
		}
		add(uint64(x.Inside))
		add(uint64(len(x.Hold)))
		for _, h := range x.Hold {
			add(uint64(h.Thread))
			add(uint64(h.Addr))
			add(uint64(h.Newest))
		}
	}
	return xxh3.Hash(b)
}
