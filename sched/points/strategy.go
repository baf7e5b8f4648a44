package points

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// Operation is the access or system call that a thread makes next. The zero value is one that is not
// known.
type Operation struct {
	// Addr is the address of the access, and Size its bytes; 0: they are not known, or it is no access.
	Addr   arch.Addr
	Size   uint64
	Writes bool
	// Selected: Estimate.Left counts the operation.
	Selected bool
	// PC is the instruction, and Reads says whether it reads.
	PC    arch.Addr
	Reads bool
}

// conflicts reports whether two operations are accesses to a common byte, of which one writes.
func (o Operation) conflicts(with Operation) bool {
	overlap := uint64(o.Addr-with.Addr) < with.Size || uint64(with.Addr-o.Addr) < o.Size
	return o.Size > 0 && with.Size > 0 && overlap && (o.Writes || with.Writes)
}

// Choice is a question to a Strategy.
type Choice struct {
	// Current is the thread that has run last. It may be unable to continue.
	Current arch.ThreadID
	// Runnable has the threads that can run, two or more, in the order of their ids.
	Runnable []arch.ThreadID
	// Next has the operations of the threads that are stopped before one.
	Next map[arch.ThreadID]Operation
}

// beforeNone returns the first thread of a list that is before no operation, or NoThread: until such
// a thread is before one, its order with others does not matter.
func (c *Choice) beforeNone(among []arch.ThreadID) arch.ThreadID {
	for _, t := range among {
		if _, before := c.Next[t]; !before {
			return t
		}
	}
	return arch.NoThread
}

// A Strategy chooses the thread that runs up to the next point. It is plain data.
type Strategy interface {
	// Choose returns one of the runnable threads.
	Choose(c *Choice) arch.ThreadID
	// Yield reports that a thread lets others run first, or has to.
	Yield(t arch.ThreadID)
}

// Names of the strategies.
const (
	// Walk is the random walk: each runnable thread is equally likely at each point.
	Walk = "walk"
	// PCT2 and PCT3 are probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and
	// Nagarakatte, ASPLOS 2010, section 3) with bug depths 2 and 3: threads have random priorities,
	// the first in priority runs, and at d-1 random points of k the running thread falls below all
	// others. A bug of depth d among n threads is found with a probability of at least
	// 1/(n k^(d-1)).
	PCT2 = "pct2"
	PCT3 = "pct3"
	// POS is partial order sampling (Yuan, Yang and Gu, CAV 2018, section 3): each operation has a
	// random priority, the first in priority is executed, and the operations that conflict with it
	// get new priorities.
	POS = "pos"
	// SURW is the selectively uniform random walk (Zhao, Wolff, Mathur and Roychoudhury, ASPLOS
	// 2025): the thread of the next selected operation is drawn in proportion to the selected operations
	// that each thread has left, those of threads that it will create included, which makes all
	// interleavings of these operations equally likely if Estimate.Left is right. Up to this
	// operation threads that are before no selected one are equally likely at each point.
	SURW = "surw"
	// Delay is delay bounding (Emmi, Qadeer and Rakamaric, POPL 2011): threads take turns in the order of
	// their ids, each until it cannot continue, and at some points of k, Estimate.Bound of them, the
	// thread whose turn it is loses it. Estimate.Rank is the number of the set of points: ranks
	// from 0 to DelaySchedules-1 give all sets, as in iterative delay bounding (Thomson, Donaldson and
	// Betts, TOPC 2016).
	Delay = "delay"
	// Preempt is preemption bounding (Musuvathi and Qadeer, PLDI 2007), sampled: at Estimate.Bound random
	// points of k another thread, each equally likely, continues; otherwise threads run until they
	// cannot continue, and the next one is random.
	Preempt = "preempt"
	// Period is periodical scheduling (Wen and others, ICSE 2022), sampled: a run has Estimate.Bound+1
	// periods, the operations of each thread are divided among them at random, and within a
	// period threads run one after the other.
	Period = "period"
	// RFF is reads-from fuzzing (Wolff, Shi, Duck, Mathur and Roychoudhury, ASPLOS 2024): a schedule
	// tries to satisfy Constraints on which write some reads read from; otherwise it is POS.
	RFF = "rff"
	// Turns has no randomness: threads take turns as for Delay, without delays.
	Turns = "turns"
	// Serial has no preemption: a thread runs until it cannot continue, yields or ends, and each of the
	// others is then equally likely to be the next.
	Serial = "serial"
)

// Names lists the strategies between which a search alternates.
func Names() []string {
	return []string{Walk, PCT2, POS, SURW, RFF, PCT3, Delay, Period, Preempt}
}

// Estimate is the knowledge of earlier runs on which some strategies build.
type Estimate struct {
	// Points is the number of points of a run: k of PCT.
	Points uint64
	// Left is the number of selected operations of each thread, and Creators has the thread that
	// creates it.
	Left     map[arch.ThreadID]uint64
	Creators map[arch.ThreadID]arch.ThreadID
	// Bound and Rank are those of Delay, Preempt and Period.
	Bound int
	Rank  uint64
	// Constraints are those of RFF.
	Constraints []Constraint
}

// New makes a strategy by its name, which must be one of those above.
func New(name string, seed uint64, e Estimate) Strategy {
	draw := rand.NewStream(seed, 'C')
	switch name {
	case Walk:
		return &walk{draw: draw, yielded: arch.NoThread}
	case PCT2:
		return newPCT(draw, 2, e.Points)
	case PCT3:
		return newPCT(draw, 3, e.Points)
	case POS:
		return &pos{draw: draw, priorities: map[arch.ThreadID]uint64{}, yielded: arch.NoThread}
	case SURW:
		return &surw{draw: draw, left: maps.Clone(e.Left), creators: e.Creators, intended: arch.NoThread, yielded: arch.NoThread}
	case RFF:
		return newRFF(draw, e.Constraints)
	case Delay:
		return &turns{delays: placeDelays(e.Bound, e.Points, e.Rank), yielded: arch.NoThread}
	case Preempt:
		at := drawPoints(&draw, e.Bound, e.Points)
		return &preempting{serial: serial{walk{draw: draw, yielded: arch.NoThread}}, at: at}
	case Period:
		return newPeriods(draw, e.Bound+1, e.Left)
	case Turns:
		return &turns{yielded: arch.NoThread}
	case Serial:
		return &serial{walk{draw: draw, yielded: arch.NoThread}}
	}
	panic("bug: no strategy " + name)
}

// drawPoints draws numbers of points, in ascending order.
func drawPoints(draw *rand.Stream, n int, among uint64) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = 1 + draw.Below(max(1, among))
	}
	slices.Sort(list)
	return list
}

// walk is the strategy Walk. A thread that has yielded is left out of the next draw.
type walk struct {
	draw    rand.Stream
	yielded arch.ThreadID
}

func (s *walk) Yield(t arch.ThreadID) { s.yielded = t }

func (s *walk) Choose(c *Choice) arch.ThreadID {
	others := without(c.Runnable, s.yielded)
	s.yielded = arch.NoThread
	return others[s.draw.Below(uint64(len(others)))]
}

// serial is the strategy Serial.
type serial struct{ walk }

func (s *serial) Choose(c *Choice) arch.ThreadID {
	if s.yielded != c.Current && slices.Contains(c.Runnable, c.Current) {
		return c.Current
	}
	s.yielded = c.Current
	return s.walk.Choose(c)
}

// without returns the threads of a list but one, unless that is the only one.
func without(list []arch.ThreadID, t arch.ThreadID) []arch.ThreadID {
	i := slices.Index(list, t)
	if i < 0 || len(list) == 1 {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// pct is the strategies PCT2 and PCT3. A thread that yields falls below all others, which is not in
// the paper: without it a thread that spins would run for ever.
type pct struct {
	draw       rand.Stream
	priorities map[arch.ThreadID]int64 // for look-up only
	changes    []change                // still to come, the next one first
	asked      uint64
	lowest     int64
}

// change has the thread that runs at a point get another priority.
type change struct {
	at       uint64
	priority int64
}

// Initial priorities are above these of changes of priority, which are from 1 on; yields give others
// from 0 down.
const lowestInitial = 1 << 20

func newPCT(draw rand.Stream, depth int, length uint64) *pct {
	s := &pct{draw: draw, priorities: map[arch.ThreadID]int64{}, lowest: 1}
	for i := range depth - 1 {
		s.changes = append(s.changes, change{1 + s.draw.Below(max(1, length)), int64(i + 1)})
	}
	slices.SortFunc(s.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.priority, a.priority))
	})
	return s
}

func (s *pct) Yield(t arch.ThreadID) {
	s.lowest--
	s.priorities[t] = s.lowest
}

func (s *pct) Choose(c *Choice) arch.ThreadID {
	s.asked++
	for _, t := range c.Runnable {
		if _, known := s.priorities[t]; !known {
			s.priorities[t] = lowestInitial + int64(s.draw.Below(1<<60))
		}
	}
	for len(s.changes) > 0 && s.changes[0].at <= s.asked {
		s.priorities[c.Current] = s.changes[0].priority
		s.changes = s.changes[1:]
	}
	return slices.MaxFunc(c.Runnable, func(a, b arch.ThreadID) int {
		return cmp.Compare(s.priorities[a], s.priorities[b])
	})
}

// pos is the strategy POS. The operation of a thread that yields has the lowest priority until it is
// executed or another one is.
type pos struct {
	draw       rand.Stream
	priorities map[arch.ThreadID]uint64 // of each thread's next operation; for look-up only
	yielded    arch.ThreadID
}

func (s *pos) Yield(t arch.ThreadID) { s.priorities[t], s.yielded = lowestOfPOS, t }

// lowestOfPOS is below all priorities that are drawn.
const lowestOfPOS = 0

func (s *pos) Choose(c *Choice) arch.ThreadID {
	if t := c.beforeNone(without(c.Runnable, s.yielded)); t != arch.NoThread {
		s.yielded = arch.NoThread
		return t
	}
	s.yielded = arch.NoThread
	for _, t := range c.Runnable {
		if _, known := s.priorities[t]; !known {
			s.priorities[t] = s.drawPriority()
		}
	}
	chosen := slices.MaxFunc(c.Runnable, func(a, b arch.ThreadID) int {
		return cmp.Compare(s.priorities[a], s.priorities[b])
	})
	for _, t := range c.Runnable {
		if t == chosen || c.Next[chosen].conflicts(c.Next[t]) || s.priorities[t] == lowestOfPOS {
			s.priorities[t] = s.drawPriority()
		}
	}
	return chosen
}

func (s *pos) drawPriority() uint64 { return s.draw.Uint64() | 1 }

// turns is the strategies Delay and Turns.
type turns struct {
	delays  []uint64 // still to come
	asked   uint64
	yielded arch.ThreadID
}

func (s *turns) Yield(t arch.ThreadID) { s.yielded = t }

func (s *turns) Choose(c *Choice) arch.ThreadID {
	s.asked++
	t := c.Current
	if s.yielded == t || !slices.Contains(c.Runnable, t) {
		t = successor(c.Runnable, t)
	}
	s.yielded = arch.NoThread
	for len(s.delays) > 0 && s.delays[0] <= s.asked {
		t = successor(c.Runnable, t)
		s.delays = s.delays[1:]
	}
	return t
}

// successor returns the thread with the next id after t, cyclically.
func successor(runnable []arch.ThreadID, t arch.ThreadID) arch.ThreadID {
	for _, next := range runnable {
		if next > t {
			return next
		}
	}
	return runnable[0]
}
