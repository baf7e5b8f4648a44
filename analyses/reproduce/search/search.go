package search

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/schedule"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Answer is what came of a search.
type Answer uint8

// Answers.
const (
	// Limit: neither a schedule was found, nor that there is none.
	Limit Answer = iota
	Found
	None
)

func (a Answer) String() string { return [...]string{"limit", "found", "none"}[a] }

// DefaultStates is how many states are looked at, in some seconds, or twenty for
// each event if that is more.
const DefaultStates = 200_000

// Options of a search.
type Options struct {
	// FreeCores takes no order from the cores.
	FreeCores bool
	// States bounds the states that are looked at; 0 stands for DefaultStates.
	States int
	// Stop, if set, is asked now and then: the search ends when it says so.
	Stop func() bool
}

// Result is what came of a search. States are those that were looked at, Furthest
// is how many of the trace's events the search has executed together.
type Result struct {
	Answer   Answer
	Schedule schedule.Schedule
	States   int
	Furthest int
	// Others are ways out of what conditions assume, the furthest first: None proves
	// that there is no schedule if there are none.
	Others []Other
}

// Other is an event that may read another value than a condition assumes, before
// anything else is wrong. Its symbol is empty where no value can be named.
type Other struct {
	Symbol string
	Value  symbolic.Value
	at     int // how many steps are before it
}

// Search looks for a schedule of a trace that Check accepts.
func Search(t *model.Trace, m model.Memory, o Options) *Result {
	r := &Result{}
	if len(t.Threads) > maxThreads {
		return r
	}
	x := newSearcher(t, m, o)
	if x.impossible {
		r.Answer, r.Others = None, x.found()
		return r
	}
	states := o.States
	if states == 0 {
		states = max(DefaultStates, 20*len(t.Events))
	}
	first := max(firstRound, 2*len(t.Events)) // the end must be in reach
	for round := 0; r.Answer == Limit && r.States < states && !x.stopped; round++ {
		x.begin(round, min(first<<(round/roundsOfSize), states-r.States))
		final, complete := x.from(x.start())
		r.States += len(x.seen)
		r.Furthest = x.furthest
		switch {
		case final != nil:
			r.Answer, r.Schedule = Found, final.schedule()
		case complete:
			r.Answer = None
		}
	}
	r.Others = x.found()
	return r
}

// A search that begins wrong spends all its time on the end. So it begins again and
// again with the threads in another order, longer each time; what was proved to lead
// nowhere is kept.
const (
	firstRound   = 256 // states
	roundsOfSize = 16
)

func (x *searcher) begin(round, limit int) {
	x.seen, x.limit, x.last, x.random = map[string]bool{}, limit, 0, uint64(round)
	x.timed, x.shuffles = round == 1, round > 1
}

// draw is a number from 0 to below n, of a sequence for each round (SplitMix64).
func (x *searcher) draw(n int) int {
	x.random += 0x9e3779b97f4a7c15
	z := x.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

// turns is the order in which threads are tried: first that whose turn it was, as
// schedules have few switches then; or that which was first in the recorded run, as
// far as the cores tell; or by chance another.
func (x *searcher) turns(s *state) []int {
	n := len(s.at)
	order := make([]int, n)
	for i := range order {
		order[i] = (x.last + i) % n
	}
	if x.timed {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.timeOf(s, a), x.timeOf(s, b)) })
		return order
	}
	if x.shuffles {
		from := x.draw(2) // 1 keeps the first
		for i := n - 1; i > from; i-- {
			k := from + x.draw(i-from+1)
			order[i], order[k] = order[k], order[i]
		}
	}
	return order
}

// maxThreads is how many threads a lock's readers can be told apart.
const maxThreads = 64

// use is from where to where in its thread's events the value of a read is needed.
type use struct {
	id       model.ID
	from, to int32
}

type searcher struct {
	*model.Trace
	model    model.Memory
	limit    int
	seen     map[string]bool
	furthest int
	local    []bool
	live     [][]use            // by thread
	tests    [][]*symbolic.Expr // by event: conditions to be looked at behind it
	assumed  [][]*symbolic.Expr // likewise, what is assumed
	pending  []int32            // by thread, behind how many events nothing is assumed
	others   map[Other]int
	place    map[uint64]int32 // of a byte in memory
	objects  map[event.ObjectID]int32
	before   [][]model.ID // by event, what the order of the cores wants before
	reader   map[string]model.ID
	private  []bool           // accesses that nobody else can notice
	forks    map[int]model.ID // by thread
	// impossible tells of a condition that never holds.
	impossible bool
	last       int // the thread whose turn it was
	// dead are states that surely lead nowhere, of all rounds.
	dead     map[string]bool
	random   uint64
	shuffles bool
	timed    bool
	times    []uint64 // by event, when it was in the recorded run, about
	stop     func() bool
	stopped  bool
}

func newSearcher(t *model.Trace, m model.Memory, o Options) *searcher {
	x := &searcher{
		Trace: t, model: m, dead: map[string]bool{}, live: make([][]use, len(t.Threads)),
		tests: make([][]*symbolic.Expr, len(t.Events)), assumed: make([][]*symbolic.Expr, len(t.Events)),
		pending: make([]int32, len(t.Threads)), others: map[Other]int{}, place: map[uint64]int32{}, objects: map[event.ObjectID]int32{},
		before: make([][]model.ID, len(t.Events)), reader: map[string]model.ID{}, forks: map[int]model.ID{}, stop: o.Stop,
	}
	held := heldLocks(t)
	x.private = privateAccesses(t, held)
	x.local = locals(t, m, held, x.private)
	edges := t.Numbering()
	if !o.FreeCores {
		edges = append(edges, t.CoreOrder(m)...)
	}
	for _, e := range edges {
		x.before[e.To] = append(x.before[e.To], e.From)
	}
	for id := range t.Events {
		e := &t.Events[id]
		if _, known := x.objects[e.Object]; !known {
			x.objects[e.Object] = int32(len(x.objects))
		}
		if e.Kind.Reads() {
			x.reader[e.Symbol.Name] = model.ID(id)
		}
		if e.Kind == model.Fork {
			x.forks[e.Peer] = model.ID(id)
		}
	}
	x.times = times(t)
	x.layOut()
	x.uses()
	return x
}

// layOut gives every byte that the trace touches a place.
func (x *searcher) layOut() {
	for _, c := range x.Cells() {
		n := c.Size
		if c.Of != nil {
			n *= c.Of.Count
		}
		for i := range n {
			x.place[c.Addr+uint64(i)] = int32(len(x.place))
		}
	}
}

// uses finds when conditions can be looked at, and how long values are needed.
func (x *searcher) uses() {
	until := map[model.ID]int32{}
	for _, c := range slices.Concat(x.Path, x.Bug) {
		threads := map[int]bool{}
		var reads []model.ID
		symbolic.Symbols(c.Expr, func(s *symbolic.Expr) {
			if id, ok := x.reader[s.Name]; ok {
				reads = append(reads, id)
				threads[x.Events[id].Thread] = true
			}
		})
		if len(reads) == 0 {
			x.impossible = x.impossible || c.Expr.IsConst() && c.Expr.Value.Lo == 0
			continue
		}
		last := slices.MaxFunc(reads, func(a, b model.ID) int { return x.Events[a].At - x.Events[b].At })
		into := x.tests
		if c.Assumed {
			into = x.assumed
			x.pending[x.Events[last].Thread] = max(x.pending[x.Events[last].Thread], int32(x.Events[last].At)+1)
		}
		for _, id := range reads {
			if len(threads) > 1 {
				until[id] = int32(len(x.Threads[x.Events[id].Thread].Events))
				into[id] = append(into[id], c.Expr)
			} else {
				until[id] = max(until[id], int32(x.Events[last].At))
			}
		}
		if len(threads) == 1 {
			into[last] = append(into[last], c.Expr)
		}
	}
	for id := range x.Events {
		e := &x.Events[id]
		for _, of := range []*symbolic.Expr{e.Value, e.Index} {
			if of == nil {
				continue
			}
			symbolic.Symbols(of, func(s *symbolic.Expr) {
				if r, ok := x.reader[s.Name]; ok {
					until[r] = max(until[r], int32(e.At))
				}
			})
		}
	}
	for id := range x.Events {
		if e := &x.Events[id]; until[model.ID(id)] > int32(e.At) {
			x.live[e.Thread] = append(x.live[e.Thread], use{model.ID(id), int32(e.At), until[model.ID(id)]})
		}
	}
}

func (x *searcher) start() *state {
	n := len(x.objects)
	s := &state{
		at: make([]int32, len(x.Threads)), memory: make([]byte, len(x.place)), values: make([]symbolic.Value, len(x.Events)),
		buffers: make([][]write, len(x.Threads)), locks: make([]lock, n), counts: make([]int32, n), waiting: make([][]waiter, n),
	}
	for a, at := range x.place {
		s.memory[at] = x.Initial[a]
	}
	for o, i := range x.objects {
		s.counts[i] = int32(x.Semaphores[o])
	}
	return s
}

// from looks through what can follow a state. It returns the end of a schedule, or
// nil and whether there is surely none.
func (x *searcher) from(s *state) (final *state, complete bool) {
	for {
		done, moved, ok := x.settle(s)
		if !ok {
			return nil, true
		}
		if done {
			return s, true
		}
		if !moved {
			break
		}
	}
	k := x.key(s)
	if x.dead[k] {
		return nil, true
	}
	if x.stop != nil && len(x.seen)%64 == 0 && x.stop() {
		x.stopped = true
	}
	if x.seen[k] || len(x.seen) >= x.limit || x.stopped {
		return nil, false
	}
	x.seen[k] = true
	if s.steps != nil {
		x.furthest = max(x.furthest, s.steps.n)
	}
	final, complete = x.branch(s)
	if final == nil && complete {
		x.dead[k] = true
	}
	return final, complete
}

// settle takes one step that need not be interleaved. It is not ok if that
// leads nowhere.
func (x *searcher) settle(s *state) (done, moved, ok bool) {
	done = true
	over := x.allExecuted(s)
	for t := range s.at {
		if len(s.buffers[t]) > 0 {
			done = false
			if free := x.mayCommit(s, t); len(free) > 0 && (over || x.private[s.buffers[t][free[0]].id]) {
				x.commit(s, t, free[0])
				return false, true, true
			}
		}
		if int(s.at[t]) == len(x.Threads[t].Events) {
			continue
		}
		done = false
		id := x.Threads[t].Events[s.at[t]]
		if k := x.Events[id].Kind; !x.local[id] || k == model.Signal || !x.ready(s, id) {
			continue
		}
		ok = x.execute(s, id, -1)
		if !ok {
			x.early(s, t)
		}
		return false, true, ok
	}
	return done, false, true
}

// branch tries each thread's next step, that of the thread whose turn it was first:
// schedules have few switches then.
func (x *searcher) branch(s *state) (*state, bool) {
	complete := true
	try := func(next *state, ok bool, thread int) *state {
		if !ok {
			return nil
		}
		old := x.last
		x.last = thread
		defer func() { x.last = old }()
		final, all := x.from(next)
		complete = complete && all
		return final
	}
	asked := x.demanded(s)
	for _, t := range x.turns(s) {
		if int(s.at[t]) < len(x.Threads[t].Events) {
			id := x.Threads[t].Events[s.at[t]]
			if x.ready(s, id) {
				for _, woken := range x.wakes(s, id) {
					next := s.clone()
					if final := try(next, x.execute(next, id, woken), t); final != nil {
						return final, true
					}
				}
			}
		}
		for _, i := range x.mayCommit(s, t) {
			if !asked[t][i] {
				continue
			}
			next := s.clone()
			x.commit(next, t, i)
			if final := try(next, true, t); final != nil {
				return final, true
			}
		}
	}
	return nil, complete
}
