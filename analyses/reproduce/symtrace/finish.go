package symtrace

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/paths"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Result is a symbolic trace.
type Result struct {
	Trace *model.Trace
	// Threads are those of the trace, in its order, and Where its events are, by
	// event.
	Threads []Walked
	Where   []Coordinate
	// Shared are the addresses that threads share, and Excluded how many pieces of
	// eight bytes would be if Options.Only did not leave them out.
	Shared   []Range
	Excluded int
	// Rounds is how often the threads were followed until it was known what they
	// share, and Instructions how many were in the last round.
	Rounds       int
	Instructions uint64
	// Faults is how many threads can fault where their paths end.
	Faults int
	// Guesses is how many values were guessed: that there is no schedule then is not
	// known for others.
	Guesses int
	// Assumed are conditions of the trace that no path tells, such as that an address
	// has one value, and Outcomes calls that may have returned something else: that
	// there is no schedule then is not known for others.
	Assumed, Outcomes int
	// Known is what was found out, for Options.Known.
	Known *Known
}

// maxRounds is how often threads are followed at most.
const maxRounds = 64

// Build follows all threads of a run along their paths. Prefix is how many
// instructions the first thread has executed where the image is.
func Build(image *Image, profile *paths.Profile, first event.ThreadID, prefix uint64, o Options) (*Result, error) {
	all := map[event.ThreadID]*path{}
	for i := range profile.Threads {
		t := &profile.Threads[i]
		all[t.ID] = newPath(profile, t)
		if o.Spins {
			all[t.ID].cutLoop()
		}
	}
	k := o.known()
	patience := fewTries
	for round := 1; ; round++ {
		b := newBuilder(image, profile, all, o, k)
		b.patience = patience
		if err := b.run(first, prefix); err != nil {
			return nil, err
		}
		found := 0
		if !o.Given {
			found = b.sharing.conflicts()
		}
		history := b.learn()
		before := k.writers
		locks := b.operated()
		did := b.did()
		k.unfed = !did.equal(k.outside) || !did.equal(b.outside)
		stable := maps.Equal(before, b.writers()) && slices.Equal(locks, k.locks) && !k.unfed
		past := b.wrote()
		stable = stable && maps.EqualFunc(past, k.past, pastWrites.equal)
		k.past = past
		k.writers, k.once, k.locks, k.outside = b.writers(), b.writes(), locks, did
		if found == 0 && !b.grew && stable {
			if why := b.wrong(); why != "" && (round >= maxRounds || patience == maxTries && same(history, b.history)) {
				return nil, errors.New(why)
			} else if why == "" {
				return b.result(round, k), nil
			}
			if same(history, b.history) {
				patience = min(maxTries, 8*patience)
			}
		}
		if round >= maxRounds {
			return nil, fmt.Errorf("it is not known after %d rounds what the threads share", round)
		}
		k.history = history
	}
}

// wrote is what the next round knows of who writes when, but of elements of arrays: a
// thread's own memory does not have them.
func (b *builder) wrote() map[uint64]pastWrites {
	past := b.sharing.wrote()
	for o, a := range b.arrays {
		for g := o / granule; g <= (o+a.object.Size-1)/granule; g++ {
			past[g] = pastWrites{}
		}
	}
	return past
}

// writers are the threads that write what is shared. Memory of a thread does not have
// what it wrote to elements of arrays, so arrays belong to none.
func (b *builder) writers() map[uint64]int {
	all := b.sharing.writing()
	for o, a := range b.arrays {
		for g := o / granule; g <= (o+a.object.Size-1)/granule; g++ {
			all[g] = several
		}
	}
	return all
}

func newBuilder(image *Image, profile *paths.Profile, all map[event.ThreadID]*path, o Options, k *Known) *builder {
	b := &builder{
		image: image, profile: profile, options: o, pool: symbolic.NewPool(), sharing: newSharing(k.granules, k.writers, k.past), paths: all,
		arrays: k.arrays, plain: k.plain, blocks: k.blocks, history: k.history, written: k.once,
		locks: k.locks, outside: k.outside.clone(), unfed: k.unfed,
		byPointer: map[uint64]*walker{}, ids: map[uint64]event.ObjectID{}, lockKinds: map[uint64]lockKind{}, counts: map[uint64]int{}, bits: map[string]int{},
		named:  map[string]*symbolic.Expr{},
		places: map[string]location{}, guesses: map[string]symbolic.Value{},
		seen: map[string]symbolic.Value{}, taken: map[event.ThreadID]bool{}, connected: map[uint64]bool{},
	}
	b.sharing.only = o.Only
	return b
}

// wrong is why a thread does not take its path.
func (b *builder) wrong() string {
	for _, w := range b.walkers {
		if w.wrong != "" {
			return w.wrong
		}
	}
	return ""
}

func same(a, b map[location][]uint64) bool {
	return maps.EqualFunc(a, b, func(x, y []uint64) bool { return slices.Equal(x, y) })
}

// maxValues is how many values a place is known to have at most.
const maxValues = 64

// learn collects the values that were written, by where.
func (b *builder) learn() map[location][]uint64 {
	seen := map[location]map[uint64]bool{}
	for l, all := range b.history {
		seen[l] = map[uint64]bool{}
		for _, v := range all {
			seen[l][v] = true
		}
	}
	put := func(l location, v uint64) {
		if seen[l] == nil {
			seen[l] = map[uint64]bool{}
		}
		if len(seen[l]) < maxValues {
			seen[l][v] = true
		}
	}
	for _, w := range b.walkers {
		for i := range w.events {
			e := &w.events[i]
			if !e.Kind.Writes() {
				continue
			}
			l := location{e.Addr, e.Size}
			for _, v := range b.possible(e.Value) {
				put(l, v)
			}
		}
	}
	out := map[location][]uint64{}
	for l, all := range seen {
		out[l] = slices.Sorted(maps.Keys(all))
	}
	return out
}

// possible are values of an expression of at most one symbol.
func (b *builder) possible(e *symbolic.Expr) []uint64 {
	if e.IsConst() {
		return []uint64{e.Value.Lo}
	}
	name, several := "", false
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		several = several || name != "" && name != s.Name
		name = s.Name
	})
	if several || name == "" {
		return nil
	}
	var all []uint64
	for _, v := range b.values(nil, name) {
		x, err := symbolic.NewEvaluator(func(string) (symbolic.Value, bool) { return v, true }).Value(e)
		if err == nil {
			all = append(all, x.Lo)
		}
	}
	return all
}

// values are those that a symbol may have: what is in memory at the begin, and what
// is written there.
func (b *builder) values(_ *walker, name string) []symbolic.Value {
	l, ok := b.places[name]
	if !ok {
		return nil
	}
	var all []uint64
	add := func(v uint64) {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	for _, v := range b.history[l] {
		add(v)
	}
	n := 1
	if a, ok := b.arrays[l.addr]; ok {
		n = int(a.object.Size) / l.size
	}
	for i := range min(n, maxValues) {
		content := make([]byte, l.size)
		b.image.peek(l.addr+uint64(i*l.size), content)
		add(valueOf(content).Lo)
	}
	var out []symbolic.Value
	for _, v := range all {
		out = append(out, symbolic.Value{Lo: v})
	}
	return out
}

// fault executes the instruction behind the path, to see whether a signal can come
// from it.
func (w *walker) fault() {
	var code [15]byte
	n := w.b.image.peek(w.pc(), code[:])
	if n == 0 {
		w.faults(nil) // a jump to nowhere
		return
	}
	lifted, err := vex.Lift(code[:n], w.pc())
	if err != nil {
		return
	}
	x := &block{Block: lifted, code: code[:n]}
	x.scan()
	if len(w.temps) < len(x.Types) {
		w.temps = make([]*symbolic.Expr, 2*len(x.Types))
	}
	events, conds, since, at, pc := len(w.events), len(w.conds), w.since, w.at, w.pc()
	r := &round{walker: w, block: x, base: w.since, from: w.at}
	w.faulting = true
	for _, s := range x.Stmts {
		if m, ok := s.(*vex.Mark); ok && m.Addr != x.Addr || r.err != nil {
			break
		}
		r.statement(s)
	}
	w.faulting, w.since, w.at = false, since, at
	w.events, w.coords, w.conds = w.events[:events], w.coords[:events], w.conds[:conds]
	w.machine.State.SetWord(vex.OffsetRIP, pc)
	var f errFault
	if errors.As(r.err, &f) {
		w.faults(f.condition)
	}
}

// result makes the trace.
func (b *builder) result(rounds int, k *Known) *Result {
	t := model.New(b.pool)
	out := &Result{Trace: t, Rounds: rounds, Excluded: b.sharing.excluded, Known: k}
	for _, w := range b.walkers {
		n := t.AddThread(fmt.Sprint(w.ID))
		t.Threads[n].Made = int(w.ID)
	}
	b.open()
	for _, o := range slices.Sorted(maps.Keys(b.arrays)) {
		a := b.arrays[o]
		t.Arrays = append(t.Arrays, model.Array{Addr: o, Elem: a.elem, Count: int(a.object.Size) / a.elem})
	}
	for _, w := range b.walkers {
		if b.options.Spins {
			w.lastRound(b)
		}
		for i := range w.events {
			t.Add(w.events[i])
			out.Where = append(out.Where, w.coords[i])
		}
		t.Path = append(t.Path, w.conds...)
		out.Outcomes += w.outcomes
		for _, c := range w.conds {
			if c.Assumed {
				out.Assumed++
			}
		}
		out.Instructions += w.Instructions
		for name := range w.fixed {
			if _, guessed := b.guesses[name]; guessed {
				out.Guesses++
			}
		}
	}
	b.fail(t)
	for _, w := range b.walkers {
		out.Threads = append(out.Threads, *w.Walked)
	}
	out.Faults = len(b.faults)
	b.fill(t)
	out.Shared = b.ranges()
	return out
}

// certainFirst puts threads that fault in any case before those that may.
func (b *builder) certainFirst() {
	slices.SortStableFunc(b.faults, func(x, y fault) int {
		switch {
		case x.condition == nil && y.condition != nil:
			return -1
		case x.condition != nil && y.condition == nil:
			return 1
		}
		return 0
	})
}

// fail says what the failure is: for an assertion, the branch before it.
func (b *builder) fail(t *model.Trace) {
	b.certainFirst()
	t.Stuck, t.Queued = b.options.Stuck, true
	if n := b.options.Faulting; n < len(b.faults) {
		f := &b.faults[n]
		f.thread.Ending = Faulted
		if f.condition != nil {
			t.Bug = append(t.Bug, model.Condition{Expr: f.condition, Thread: f.thread.number, Where: f.where})
		}
	}
	if b.options.Output != nil {
		t.Bug = append(t.Bug, model.Condition{Expr: b.otherOutput(), Thread: -1})
	}
	for i := len(t.Path) - 1; i >= 0; i-- {
		if w := b.walkers[t.Path[i].Thread]; w.Ending == Failed {
			t.Bug = append(t.Bug, t.Path[i])
			t.Path = slices.Delete(t.Path, i, i+1)
			return
		}
	}
}

// fill gives the trace what memory has at the begin.
func (b *builder) fill(t *model.Trace) {
	put := func(addr uint64, n int) {
		content := make([]byte, n)
		b.image.peek(addr, content)
		for i, x := range content {
			if x != 0 {
				t.Initial[addr+uint64(i)] = x
			}
		}
	}
	for i := range t.Arrays {
		put(t.Arrays[i].Addr, t.Arrays[i].Elem*t.Arrays[i].Count)
	}
	for i := range t.Events {
		if e := &t.Events[i]; (e.Kind.Reads() || e.Kind.Writes()) && e.Index == nil {
			put(e.Addr, e.Size)
		}
	}
	for addr, id := range b.ids { // each its own
		var value [4]byte
		b.image.peek(addr, value[:])
		if n := int(valueOf(value[:]).Lo); n > 0 {
			t.Semaphores[id] = n
		}
	}
}

// ranges are what is shared, together where it is next to each other.
func (b *builder) ranges() []Range {
	var all []Range
	for _, g := range slices.Sorted(maps.Keys(b.sharing.known)) {
		if g*granule >= freedPlaces {
			break
		}
		if n := len(all); n > 0 && all[n-1].End == g*granule {
			all[n-1].End += granule
			continue
		}
		all = append(all, Range{g * granule, (g + 1) * granule})
	}
	return all
}

// lastRound has all other threads that end do so before the last round of a loop that a
// thread never leaves.
func (w *walker) lastRound(b *builder) {
	if w.path.loop == 0 {
		return
	}
	from := len(w.events)
	for i := len(w.coords) - 1; i >= 0 && w.coords[i].spot >= len(w.path.spots)-w.path.loop; i-- {
		from = i
	}
	var joins []model.Event
	var coords []Coordinate
	at := Coordinate{Calls: len(w.Calls), Since: w.since}
	if from < len(w.coords) {
		at = w.coords[from]
	}
	for _, o := range b.walkers {
		if o != w && o.Ending == Returned && o.number > 0 {
			j := model.Event{Kind: model.Join, Thread: w.number, Peer: o.number}
			if n := len(w.events); n > 0 {
				e := &w.events[min(from, n-1)]
				j.Core, j.Place = e.Core, e.Place
			}
			joins, coords = append(joins, j), append(coords, at)
		}
	}
	w.events = slices.Insert(w.events, from, joins...)
	w.coords = slices.Insert(w.coords, from, coords...)
}
