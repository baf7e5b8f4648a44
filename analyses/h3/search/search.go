package search

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Answer is the result of a search.
type Answer uint8

// Answers.
const (
	// Limit: neither a schedule was found nor a proof that none exists.
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

// Result is the result of a search. States counts the examined states, Furthest the most events of
// the trace that the search has executed in one schedule.
type Result struct {
	Answer   Answer
	Schedule schedule.Schedule
	States   int
	Furthest int
	// Alternatives are values that conditions exclude by assumption, the furthest first: None is
	// a proof only if there are no alternatives.
	Alternatives []Alternative
}

// Alternative is an event that may read another value than a condition assumes, before
// anything else is wrong. Its symbol is empty where no value can be named.
type Alternative struct {
	Symbol string
	Value  symbolic.Value
	steps  int // how many steps are before it
}

// Search looks for a schedule of a trace that Check accepts.
func Search(t *model.Trace, m model.MemoryModel, o Options) *Result {
	r := &Result{}
	if len(t.Threads) > maxThreads {
		return r
	}
	x := newSearcher(t, m, o)
	if x.impossible {
		r.Answer, r.Alternatives = None, x.foundAlternatives()
		return r
	}
	states := o.States
	if states == 0 {
		states = max(DefaultStates, 20*len(t.Events))
	}
	first := max(firstRound, 2*len(t.Events)) // the end must be in reach
	for round := 0; r.Answer == Limit && r.States < states && !x.stopped; round++ {
		x.startRound(round, min(first<<(round/roundsOfSize), states-r.States))
		final, complete := x.searchFrom(x.initialState())
		r.States += len(x.seen)
		r.Furthest = x.furthest
		switch {
		case final != nil:
			r.Answer, r.Schedule = Found, final.schedule()
		case complete:
			r.Answer = None
		}
	}
	r.Alternatives = x.foundAlternatives()
	return r
}

// A search that begins with a wrong choice spends all its time near the end. So it begins again and
// again with the threads in another order, longer each time; states that are proved to lead nowhere
// are kept.
const (
	firstRound   = 256 // states
	roundsOfSize = 16
)

func (x *searcher) startRound(round, limit int) {
	x.seen, x.stateLimit, x.lastThread, x.random = map[stateKey]bool{}, limit, 0, rand.SplitMix(round)
	x.timed, x.shuffles = round == 1, round > 1
}

// threadOrder is the order in which threads are tried: first the thread that ran last, as schedules
// have few switches then; or the thread that was first in the recorded run, as far as the cores
// show it; or a random one.
func (x *searcher) threadOrder(s *state) []int {
	n := len(s.nextEvents)
	order := make([]int, n)
	for i := range order {
		order[i] = (x.lastThread + i) % n
	}
	if x.timed {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.nextEventTime(s, a), x.nextEventTime(s, b)) })
		return order
	}
	if x.shuffles {
		from := x.random.Remainder(2) // 1 keeps the first
		for i := n - 1; i > from; i-- {
			k := from + x.random.Remainder(i-from+1)
			order[i], order[k] = order[k], order[i]
		}
	}
	return order
}

// maxThreads is how many threads the readers of a lock can be represented for.
const maxThreads = 64

// use is from where to where in its thread's events the value of a read is needed.
type use struct {
	id       model.ID
	from, to int32
}

type searcher struct {
	*model.Trace
	model        model.MemoryModel
	stateLimit   int
	seen         map[stateKey]bool
	furthest     int
	local        []bool
	live         [][]use            // by thread
	tests        [][]*symbolic.Expr // by event: conditions to be evaluated after it
	assumed      [][]*symbolic.Expr // likewise, assumed conditions
	pending      []int32            // by thread, after how many events nothing is assumed
	alternatives map[Alternative]int
	place        map[uint64]int32 // of a byte in memory
	objects      map[event.ObjectID]int32
	before       [][]model.ID // by event, the events that the order of the cores puts before it
	reader       map[string]model.ID
	private      []bool           // accesses that no other thread can observe
	forks        map[int]model.ID // by thread
	// impossible: a condition never holds.
	impossible bool
	lastThread int // the thread whose turn it was
	// deadEnds are states that surely lead nowhere, of all rounds.
	deadEnds map[stateKey]bool
	// encoded is the room in which a state's key is made.
	encoded  []byte
	random   rand.SplitMix
	shuffles bool
	timed    bool
	times    []uint64 // by event, when it was in the recorded run, about
	stop     func() bool
	stopped  bool
}

func newSearcher(t *model.Trace, m model.MemoryModel, o Options) *searcher {
	x := &searcher{
		Trace: t, model: m, deadEnds: map[stateKey]bool{}, live: make([][]use, len(t.Threads)),
		tests: make([][]*symbolic.Expr, len(t.Events)), assumed: make([][]*symbolic.Expr, len(t.Events)),
		pending: make([]int32, len(t.Threads)), alternatives: map[Alternative]int{}, place: map[uint64]int32{}, objects: map[event.ObjectID]int32{},
		before: make([][]model.ID, len(t.Events)), reader: map[string]model.ID{}, forks: map[int]model.ID{}, stop: o.Stop,
	}
	held := heldLocks(t)
	x.private = privateAccesses(t, held)
	x.local = localEvents(t, m, held, x.private)
	edges := t.CreationEdges()
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
	x.times = estimateTimes(t)
	x.layOutMemory()
	x.findUses()
	return x
}

// layOutMemory gives every byte that the trace touches a place.
func (x *searcher) layOutMemory() {
	for _, c := range x.Cells() {
		n := c.Size
		if c.Array != nil {
			n *= c.Array.Count
		}
		for i := range n {
			x.place[c.Addr+uint64(i)] = int32(len(x.place))
		}
	}
}

// findUses finds when conditions can be looked at, and how long values are needed.
func (x *searcher) findUses() {
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
		last := slices.MaxFunc(reads, func(a, b model.ID) int { return x.Events[a].Number - x.Events[b].Number })
		into := x.tests
		if c.Assumed {
			into = x.assumed
			x.pending[x.Events[last].Thread] = max(x.pending[x.Events[last].Thread], int32(x.Events[last].Number)+1)
		}
		for _, id := range reads {
			if len(threads) > 1 {
				until[id] = int32(len(x.Threads[x.Events[id].Thread].Events))
				into[id] = append(into[id], c.Expr)
			} else {
				until[id] = max(until[id], int32(x.Events[last].Number))
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
					until[r] = max(until[r], int32(e.Number))
				}
			})
		}
	}
	for id := range x.Events {
		if e := &x.Events[id]; until[model.ID(id)] > int32(e.Number) {
			x.live[e.Thread] = append(x.live[e.Thread], use{model.ID(id), int32(e.Number), until[model.ID(id)]})
		}
	}
}

func (x *searcher) initialState() *state {
	n := len(x.objects)
	s := &state{
		nextEvents: make([]int32, len(x.Threads)), memory: make([]byte, len(x.place)), values: make([]symbolic.Value, len(x.Events)),
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

// searchFrom searches all continuations of a state. It returns the end of a schedule, or nil and
// whether there is certainly none.
func (x *searcher) searchFrom(s *state) (final *state, complete bool) {
	for {
		done, moved, ok := x.takeLocalStep(s)
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
	k := x.stateKey(s)
	if x.deadEnds[k] {
		return nil, true
	}
	if x.stop != nil && len(x.seen)%64 == 0 && x.stop() {
		x.stopped = true
	}
	if x.seen[k] || len(x.seen) >= x.stateLimit || x.stopped {
		return nil, false
	}
	x.seen[k] = true
	if s.steps != nil {
		x.furthest = max(x.furthest, s.steps.count)
	}
	final, complete = x.tryNextSteps(s)
	if final == nil && complete {
		x.deadEnds[k] = true
	}
	return final, complete
}

// takeLocalStep takes one step that need not be interleaved. It is not ok if that
// leads nowhere.
func (x *searcher) takeLocalStep(s *state) (done, moved, ok bool) {
	done = true
	over := x.allExecuted(s)
	for t := range s.nextEvents {
		if len(s.buffers[t]) > 0 {
			done = false
			if free := x.committableWrites(s, t); len(free) > 0 && (over || x.private[s.buffers[t][free[0]].id]) {
				x.commitWrite(s, t, free[0])
				return false, true, true
			}
		}
		if int(s.nextEvents[t]) == len(x.Threads[t].Events) {
			continue
		}
		done = false
		id := x.Threads[t].Events[s.nextEvents[t]]
		if k := x.Events[id].Kind; !x.local[id] || k == model.Signal || !x.isReady(s, id) {
			continue
		}
		ok = x.executeEvent(s, id, -1)
		if !ok {
			x.noteEarlyFailure(s, t)
		}
		return false, true, ok
	}
	return done, false, true
}

// tryNextSteps tries each thread's next step, that of the thread whose turn it was first:
// schedules have few switches then.
func (x *searcher) tryNextSteps(s *state) (*state, bool) {
	complete := true
	try := func(next *state, ok bool, thread int) *state {
		if !ok {
			return nil
		}
		old := x.lastThread
		x.lastThread = thread
		defer func() { x.lastThread = old }()
		final, all := x.searchFrom(next)
		complete = complete && all
		return final
	}
	asked := x.demandedWrites(s)
	for _, t := range x.threadOrder(s) {
		if int(s.nextEvents[t]) < len(x.Threads[t].Events) {
			id := x.Threads[t].Events[s.nextEvents[t]]
			if x.isReady(s, id) {
				for _, woken := range x.wakeableThreads(s, id) {
					next := s.clone()
					if final := try(next, x.executeEvent(next, id, woken), t); final != nil {
						return final, true
					}
				}
			}
		}
		for _, i := range x.committableWrites(s, t) {
			if !asked[t][i] {
				continue
			}
			next := s.clone()
			x.commitWrite(next, t, i)
			if final := try(next, true, t); final != nil {
				return final, true
			}
		}
	}
	return nil, complete
}
