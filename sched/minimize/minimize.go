package minimize

import (
	"context"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Outcome is what came of a run.
type Outcome struct {
	// Fails tells that the run failed in the way that is looked for.
	Fails bool
	// Schedule is what the run really did.
	Schedule Schedule
	// Recording is what is to be kept of the run if it is the best.
	Recording []byte
	// Drifted is the first step that ended elsewhere than its PC says
	// (Follower.Drifted); -1 if there is none.
	Drifted int
}

// Try carries out a schedule. An error ends the search.
type Try func(context.Context, Schedule) (Outcome, error)

// Options tune a search.
type Options struct {
	// Runs bounds how many schedules are tried; 0 means no bound.
	Runs int
	// Progress, when set, is told of each run: how many there were, and the cost
	// of the best so far.
	Progress func(runs int, best Cost)
	// Probe, when set, carries out a schedule and returns how far the place is
	// where a step ended; false if it is not found. See Follower.Probe.
	Probe func(ctx context.Context, s Schedule, step int) (off int64, found bool, err error)
}

// Result is what a search came to.
type Result struct {
	Schedule Schedule
	// Recording is that of the run with this schedule; nil if none was better than
	// the schedule that the search began with.
	Recording []byte
	Runs      int
	// Complete tells that the search was not cut short (invariant 2), and
	// Reproduced that the schedule that it began with failed.
	Complete, Reproduced bool
}

// Minimize looks for a schedule that fails at the least cost. It begins with one
// that failed. When ctx is done or the budget is used up it returns the best so
// far; the error is that of a try.
func Minimize(ctx context.Context, begin Schedule, try Try, o Options) (Result, error) {
	s := &search{ctx: ctx, try: try, options: o, best: begin, seen: map[uint64]bool{}}
	s.result.Reproduced = s.start(begin)
	if s.result.Reproduced {
		s.coarse()
		s.trim()
		s.fine()
	}
	s.result.Schedule = s.best
	s.result.Complete = !s.over()
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

// over tells that no more runs may be made.
func (s *search) over() bool {
	return s.err != nil || s.ctx.Err() != nil || s.options.Runs > 0 && s.result.Runs >= s.options.Runs
}

// run carries out a schedule that was not tried yet.
func (s *search) run(c Schedule) Outcome {
	if s.over() || s.seen[digest(c)] {
		return Outcome{}
	}
	s.seen[digest(c)] = true
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

// corrected carries out a schedule, and again as long as a step has drifted.
func (s *search) corrected(c Schedule) Outcome {
	o := s.run(c)
	for range corrections {
		if o.Fails || o.Schedule == nil || o.Drifted < 0 || s.options.Probe == nil || s.over() {
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
		c = shifted(c, o.Drifted, off)
		o = s.run(c)
	}
	return o
}

// keep makes a run the best so far.
func (s *search) keep(o Outcome) { s.best, s.result.Recording = o.Schedule, o.Recording }

// tell reports progress.
func (s *search) tell() {
	if s.options.Progress != nil {
		s.options.Progress(s.result.Runs, s.best.Cost())
	}
}

// start tries the schedule with every thread on a core of its own, and as it is.
func (s *search) start(begin Schedule) bool {
	for _, c := range []Schedule{spread(begin), begin} {
		if o := s.run(c); o.Fails && !begin.Cost().Less(o.Schedule.Cost()) {
			s.keep(o)
			s.tell()
			return true
		}
	}
	return false
}

// spread leaves each thread on the core where it first ran, and gives threads that
// would share one the others in turn, as far as there are.
func spread(s Schedule) Schedule {
	cores := event.CoreID(0)
	for i := range s {
		cores = max(cores, s[i].Core+1)
	}
	c := s.clone()
	home := map[event.ThreadID]event.CoreID{}
	for i := range c {
		core, known := home[c[i].Thread]
		if !known {
			core = event.CoreID(len(home)) % cores
			home[c[i].Thread] = core
		}
		c[i].Core = core
	}
	return c
}

// accept keeps a schedule if it fails at a smaller cost.
func (s *search) accept(c Schedule) bool {
	o := s.corrected(c)
	better := o.Fails && o.Schedule.Cost().Less(s.best.Cost())
	if better {
		s.keep(o)
	}
	s.tell()
	return better
}

// coarse drops long pieces, then shorter ones: delta debugging.
func (s *search) coarse() {
	for size := len(s.best); size > 1 && !s.over(); size = (size + 1) / 2 {
		for from := 0; from < len(s.best) && !s.over(); {
			to := min(from+size, len(s.best))
			if !s.accept(without(s.best, from, to)) && !s.accept(gathered(s.best, from, to)) && !s.accept(prompt(s.best, from, to)) {
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

// trim lets threads stop earlier of which stores wait behind delayed ones, before
// they make so many.
func (s *search) trim() {
	for again := true; again && !s.over(); {
		again = false
		for _, d := range s.best.Delays() {
			if len(s.best[d.From].Behind) == 0 {
				continue
			}
			for n := range trims {
				if c, ok := trimmed(s.best, d, n); ok && s.accept(c) {
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

// fine tries every neighbour until none is better.
func (s *search) fine() {
	for again := true; again && !s.over(); {
		again = false
		for i := 0; i < neighbours(s.best) && !s.over(); {
			if s.accept(neighbour(s.best, i)) {
				again = true
			} else {
				i++
			}
		}
	}
}

// Neighbours lists the schedules that are one change away from s: without one of
// its steps, which leaves what was run in it to the thread's next step; with a
// thread's next step at once instead of later; without a delay; with one store
// less in a delay of several; with the next store delayed instead of another; with
// a delay that ends a step earlier.
func (s Schedule) Neighbours() []Schedule {
	var all []Schedule
	for i := range neighbours(s) {
		all = append(all, neighbour(s, i))
	}
	return all
}

// changes is how many changes of a delay are tried.
const changes = 4

func neighbours(s Schedule) int { return 2*len(s) + changes*len(s.Delays()) }

func neighbour(s Schedule, i int) Schedule {
	if i < len(s) {
		return without(s, i, i+1)
	}
	if i -= len(s); i < len(s) {
		return pulled(s, i)
	}
	i -= len(s)
	switch d := s.Delays()[i/changes]; i % changes {
	case 0:
		return released(s, d, d.From, 0)
	case 1:
		return released(s, d, d.From, d.Stores-1)
	case 2:
		return passed(s, d)
	default:
		return released(s, d, d.Last, 0)
	}
}

// without leaves out steps.
func without(s Schedule, from, to int) Schedule {
	return append(s[:from].clone(), s[to:].clone()...)
}

// pulled lets the thread of a step do its next step at once.
func pulled(s Schedule, i int) Schedule {
	for k := i + 1; k < len(s); k++ {
		if s[k].Thread == s[i].Thread {
			c := without(s, k, k+1)
			c[i].endAt(&s[k])
			return c
		}
	}
	return s
}

// gathered lets each thread do all of its steps in a piece of the schedule at the
// place of the first.
func gathered(s Schedule, from, to int) Schedule {
	c := s[:from].clone()
	first := map[event.ThreadID]int{} // for look-up only
	for i := from; i < to; i++ {
		if k, ok := first[s[i].Thread]; ok {
			c[k].endAt(&s[i])
			continue
		}
		first[s[i].Thread] = len(c)
		c = append(c, s[i])
	}
	return append(c, s[to:].clone()...)
}

// trimmed ends the step in which delayed stores were made earlier: by half of it,
// and by seven, six and five eighths of that, all halved n/4 times.
func trimmed(s Schedule, d Delay, n int) (Schedule, bool) {
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
	c := s.clone()
	c[last].endAt(&Step{To: s[last].To - off})
	return c, off > 0
}

// prompt holds no store back in a piece of the schedule.
func prompt(s Schedule, from, to int) Schedule {
	c := s.clone()
	for i := from; i < to; i++ {
		c[i].Hold = nil
	}
	return c
}

// released holds back no more than so many stores of a delay, from a step on.
func released(s Schedule, d Delay, from, most int) Schedule {
	c := s.clone()
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

// passed commits the stores of a delay and holds back the next one of the thread
// instead.
func passed(s Schedule, d Delay) Schedule {
	for _, next := range s[d.From].Behind {
		if next.Thread != d.Thread || next.Store == d.Store {
			continue
		}
		c := released(s, d, d.From, 0)
		for i := d.From; i <= d.Last; i++ {
			if c[i].Thread != d.Thread && c[i].held(next.Store) == 0 {
				c[i].Hold = append(c[i].Hold, next)
			}
		}
		return c
	}
	return s
}

// digest identifies a schedule.
func digest(s Schedule) uint64 {
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
