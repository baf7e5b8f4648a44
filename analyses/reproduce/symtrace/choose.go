package symtrace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// choice is something that the path decides later: the values that are left.
type choice struct {
	saved *saved
	ways  []func(w *walker)
	next  int // the way to be tried next
	// out are the ways under which the thread left its path before anything else was
	// assumed: they are out of the question.
	out   map[int]bool
	guess bool
}

// saved is a walker in the middle of its way.
type saved struct {
	state     vex.State
	cells     [vex.StateSize]cell
	unknown   int
	mem       *view
	at        position
	since     uint64
	events    int
	conds     int
	calls     int
	children  int
	count     uint64
	fixed     map[string]symbolic.Value
	clock     int32
	clocks    []int
	heap      uint64
	refused   map[string]bool
	calling   bool
	files     map[uint64]openFile
	opened    uint64
	taken     int
	outcomes  int
	callAt    position
	sent      int
	raised    int
	lengths   int
	cleanups  []uint64
	signalled []interrupted
	restarts  bool
}

// save keeps the walker as it is.
func (w *walker) save() *saved {
	s := &saved{
		state: w.machine.State, cells: w.cells, unknown: w.unknown, mem: w.mem.clone(), at: w.at, since: w.since,
		events: len(w.events), conds: len(w.conds), calls: len(w.Calls), children: len(w.children), count: w.Instructions,
		fixed: maps.Clone(w.fixed), clock: w.clock, clocks: slices.Clone(w.clocks), heap: w.heap,
		refused: w.refused, calling: w.calling, files: maps.Clone(w.files), opened: w.opened,
		taken: len(w.taken), outcomes: w.outcomes, callAt: w.callAt, sent: len(w.sent), raised: len(w.raised), lengths: len(w.lengths), cleanups: w.cleanups,
		signalled: w.signalled, restarts: w.restarts,
	}
	s.mem.wrote = maps.Clone(w.mem.wrote)
	return s
}

func (w *walker) restore(s *saved) {
	w.machine.State, w.cells, w.unknown, w.mem = s.state, s.cells, s.unknown, s.mem.clone()
	w.mem.wrote = maps.Clone(s.mem.wrote)
	w.at, w.since, w.Instructions = s.at, s.since, s.count
	w.events, w.coords, w.conds = w.events[:s.events], w.coords[:s.events], w.conds[:s.conds]
	w.Calls, w.fixed = w.Calls[:s.calls], maps.Clone(s.fixed)
	w.b.forget(w.children[s.children:])
	w.children = w.children[:s.children]
	w.clock, w.clocks, w.heap = s.clock, slices.Clone(s.clocks), s.heap
	w.refused, w.calling, w.files, w.opened = s.refused, s.calling, maps.Clone(s.files), s.opened
	w.taken, w.outcomes = w.taken[:s.taken], s.outcomes
	w.lengths = w.lengths[:s.lengths]
	w.signalled, w.restarts = s.signalled, s.restarts
	w.callAt, w.sent, w.raised, w.cleanups = s.callAt, w.sent[:s.sent], w.raised[:s.raised], s.cleanups
	w.done, w.starved, w.Last, w.late = false, false, nil, nil
}

// decisions are the choices of a thread.
type decisions struct {
	choices []choice
	// taken are the ways that were taken, of all choices. best are those with which
	// the thread came furthest, to instruction bestAt.
	taken, best []int
	bestAt      uint64
	// origin is where the first choice was. settled tells that the best are taken
	// again, for good.
	origin  *saved
	settled bool
	// tries is how many choices were taken back, strayed how often the thread was put
	// back on its path.
	tries, strayed int
	// outcomes is how many calls can have returned something else than was taken.
	outcomes int
}

// choose goes on with the first of some ways; the others are tried if the thread
// does not come along its path.
func (w *walker) choose(ways []func(*walker), guess bool) {
	way := 0
	d := &w.decisions
	switch {
	case len(ways) == 1:
		ways[0](w)
		return
	case d.settled && len(d.taken) < len(d.best):
		way = d.best[len(d.taken)]
	case !d.settled:
		c := choice{saved: w.save(), ways: ways, next: 1, out: map[int]bool{}, guess: guess}
		if d.origin == nil {
			d.origin = cmp.Or(w.atCall, c.saved)
		}
		d.choices = append(d.choices, c)
	}
	d.taken = append(d.taken, way)
	ways[way](w)
}

// back takes the next way of the latest choice, or the best ways again if there is
// none; false: the thread does not come along its path whatever it chooses. Sure tells
// that what was assumed alone has led it away.
func (w *walker) back(sure bool) bool {
	d := &w.decisions
	if d.settled {
		return false
	}
	if w.Instructions > d.bestAt {
		d.best, d.bestAt = slices.Clone(d.taken), w.Instructions
	}
	if n := len(d.choices); sure && n > 0 && w.assumedOnce(d.choices[n-1].saved) {
		d.choices[n-1].out[d.choices[n-1].next-1] = true
	}
	d.tries++
	for len(d.choices) > 0 && d.tries <= w.b.patience {
		c := &d.choices[len(d.choices)-1]
		if c.next == len(c.ways) {
			d.choices = d.choices[:len(d.choices)-1]
			continue
		}
		way := c.next
		c.next++
		w.restore(c.saved)
		d.taken = append(d.taken, way)
		c.ways[way](w)
		return true
	}
	d.settled, d.choices = true, nil
	if d.origin == nil || slices.Equal(d.best, d.taken) {
		return false
	}
	w.restore(d.origin)
	return true
}

// assumedOnce tells that only one thing has been assumed since the walker was saved.
func (w *walker) assumedOnce(s *saved) bool {
	assumed := 0
	for _, c := range w.conds[s.conds:] {
		if c.Assumed {
			assumed++
		}
	}
	return assumed == 1 && w.outcomes == s.outcomes
}

// How often a thread's choices are taken back in all: while it is not known what is
// shared, and then.
const (
	fewTries = 64
	maxTries = 4000
)
