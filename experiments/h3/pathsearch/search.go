package pathsearch

import (
	"context"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched/follow"
	"github.com/heddle-dmt/heddle/sched/guided"
)

// Problem is a failing run of which the paths of the threads are known.
type Problem struct {
	// Config is the program with its inputs.
	Config  machine.Config
	Profile *paths.Profile
	// Fails reports whether a run that ended as the machine says, with some output, has failed in
	// the way that is looked for.
	Fails func(m *machine.Machine, stdout, stderr []byte) bool
	// Moves bounds the search.
	Moves int
	// Stop reports whether the caller ends the search.
	Stop func() bool
}

// Result is the result of a search.
type Result struct {
	// Found reports whether a schedule was found: Steps, each up to a number of instructions of a
	// thread since its begin.
	Found bool
	Steps []guided.Step
	// Last are the threads that run after the steps, the first as long as it can.
	Last []arch.ThreadID
	// Moves is how many moves were executed, and Attempts how often a thread left its path or the run
	// ended without the failure.
	Moves, Attempts int
}

// Search looks for a schedule.
func Search(ctx context.Context, p Problem) (*Result, error) {
	r, ok := newRecorded(p.Profile)
	if !ok || len(r.routes) < 2 {
		return &Result{}, nil
	}
	c := p.Config
	c.Replay, c.Record, c.Memory = nil, nil, storebuffer.Options{}
	stage, err := newStage(c)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	ran, second, err := stage.runToSecondThread(ctx, r)
	if err != nil || !second {
		return &Result{}, err
	}
	s := &search{Problem: p, recorded: r, stage: stage, ctx: ctx, sharing: newSharedCells(), writes: map[uint64]uint64{}, result: &Result{}}
	s.root = s.stage.m.Snapshot()
	s.stdoutAtRoot, s.stderrAtRoot = stage.stdout.Len(), stage.stderr.Len()
	at := r.routes[0].find(stage.pc)
	if at < 0 {
		return &Result{}, nil
	}
	first := stage.m.Kernel().Tasks()[0].Process()
	r.setRepeated(func(pc arch.Addr) bool { return repeats(first, pc) })
	s.first = newPosition(r, at, ran)
	defer s.releaseAll()
	s.carryOut()
	return s.result, ctx.Err()
}

// search is a search under way.
type search struct {
	Problem
	*recorded
	stage   *stage
	ctx     context.Context
	sharing *sharedCells
	root    *machine.Snapshot
	first   position // at the root

	stdoutAtRoot, stderrAtRoot int

	path []node
	// writes are, of each shared cell, the last write, and changes what the move under way has changed there.
	writes  map[uint64]uint64
	changes []change

	dead  map[uint64]bool // states from which every continuation was tried
	draw  rand.SplitMix
	keep  uint64 // a random order has another core move at one of that number of nodes
	style style
	urge  urge
	// best are the cores that moved in the attempt that got furthest, and furthest is how far.
	best     []int
	furthest int
	result   *Result
}

// style is a preference among the cores.
type style uint8

const (
	// paced has the core move that has executed the fewest instructions of the recorded run.
	paced style = iota
	// steady has the core continue that has moved last.
	steady
	// random has either, or any other.
	random
)

// position is where the threads are, and what they have read.
type position struct {
	done  []int    // of each thread the instructions of its path
	ran   []uint64 // of each thread the instructions, as the machine counts them
	turns []int    // of each core the turns that are over
	last  int      // the core that moved last
	reads []uint64
	sum   uint64 // of all last writes to shared cells
	calls uint64 // system calls, in their order
}

func newPosition(r *recorded, done int, ran uint64) position {
	p := position{done: make([]int, len(r.routes)), ran: make([]uint64, len(r.routes)), turns: make([]int, len(r.cores)), reads: make([]uint64, len(r.routes))}
	p.done[0], p.ran[0] = done, ran
	p.endTurns(r)
	return p
}

// endTurns notes the turns that are over.
func (p *position) endTurns(r *recorded) {
	for c := range r.cores {
		for turns := r.cores[c].turns; p.turns[c] < len(turns); p.turns[c]++ {
			if t := turns[p.turns[c]]; p.done[t.route] < t.end {
				break
			}
		}
	}
}

func (p *position) clone() position {
	q := *p
	q.done, q.ran, q.turns, q.reads = slices.Clone(p.done), slices.Clone(p.ran), slices.Clone(p.turns), slices.Clone(p.reads)
	return q
}

// key is a number for the state.
func (p *position) key() uint64 {
	k := rand.Mix(p.sum ^ rand.Mix(p.calls))
	for _, n := range p.done {
		k = rand.Mix(k ^ uint64(n))
	}
	for _, n := range p.reads {
		k = rand.Mix(k ^ n)
	}
	return k
}

// change is the last write to a cell before a move.
type change struct{ cell, before uint64 }

// note notes an access to a shared cell.
func (s *search) note(p *position, thread int, n uint64, store bool) {
	before := s.writes[n]
	if !store {
		p.reads[thread] = rand.Mix(p.reads[thread] ^ rand.Mix(n^before))
		return
	}
	now := rand.Mix(p.reads[thread] ^ rand.Mix(n+1) ^ uint64(p.done[thread])<<1)
	p.sum += rand.Mix(n^now) - rand.Mix(n^before)
	s.changes = append(s.changes, change{n, before})
	s.writes[n] = now
}

// undo takes changes back.
func (s *search) undo(changes []change) {
	for _, c := range slices.Backward(changes) {
		s.writes[c.cell] = c.before
	}
}

// node is a state of the search, and the cores that have not moved from it yet.
type node struct {
	position
	choices []int
	snap    *machine.Snapshot // nil: it is reached from an earlier one
	stdout  int
	stderr  int
	before  arch.ThreadID // that ran last
	move    int           // the core that has moved from here
	// changes are those of the move that has led here, and accesses those of the move from here to shared cells.
	changes  []change
	accesses []access
	// skipped reports that not every continuation was tried before the search left the state.
	skipped bool
	target  int    // the index to which its thread was to go
	reached uint64 // the instructions of that thread after the move, as the machine counts them
}

// access is an access to a shared cell.
type access struct {
	cell  uint64
	store bool
}

// kernelCell stands for the kernel's state, which system calls read and write.
const kernelCell = ^uint64(0)

// nodesPerSnapshot is how many nodes there are for each snapshot among the last recentNodes, and nodesPerOldSnapshot
// before them: a search returns to the last nodes most often, and snapshots take memory.
const nodesPerSnapshot, recentNodes, nodesPerOldSnapshot = 16, 256, 256

func (s *search) releaseAll() {
	s.truncate(0)
	s.root.Release()
}

// truncate removes the nodes from a number on.
func (s *search) truncate(n int) {
	for i := len(s.path) - 1; i >= n; i-- {
		s.undo(s.path[i].changes)
		if s.path[i].snap != nil {
			s.path[i].snap.Release()
		}
	}
	s.path = s.path[:n]
}

// outcome is how an attempt ends.
type outcome uint8

const (
	continues outcome = iota
	found
	exhausted
	restarts // with other preferences
	refines  // with more places
	stops
)

// unit is the number of attempts of the shortest search between two restarts.
const unit = 64

func (s *search) carryOut() {
	s.dead = map[uint64]bool{}
	for round := 1; ; {
		switch s.attempt(unit * luby(round)) {
		case found:
			s.result.Found = true
			return
		case exhausted, stops:
			return
		case refines:
			s.forget()
			continue
		}
		round++
		s.draw = rand.SplitMix(round)
		s.keep = 2 << s.draw.Below(6)
		s.style = min(random, s.style+1)
	}
}

// luby is the sequence 1 1 2 1 1 2 4 ..., from 1 on.
func luby(i int) int {
	k := 1
	for 1<<k-1 < i {
		k++
	}
	if i == 1<<k-1 {
		return 1 << (k - 1)
	}
	return luby(i - (1<<(k-1) - 1))
}

// attempt searches from the root until it has a result, more places are known, or a number of attempts
// is over.
func (s *search) attempt(most int) outcome {
	s.setPlaces(s.sharing.at)
	known := len(s.sharing.at)
	s.truncate(0)
	s.restore(s.root, s.stdoutAtRoot, s.stderrAtRoot, s.routes[0].thread)
	s.urge = urge{}
	s.push(s.first.clone(), true)
	s.repeatBest()
	for before := s.result.Attempts; ; {
		switch {
		case s.result.Moves >= s.Moves || s.Stop() || s.ctx.Err() != nil:
			return stops
		case len(s.sharing.at) > known && s.result.Attempts > before:
			if len(s.sharing.at) > known+known/manyPlaces {
				return refines
			}
			s.refine()
			known = len(s.sharing.at)
		case s.result.Attempts-before > most:
			return restarts
		}
		top := &s.path[len(s.path)-1]
		if len(top.choices) == 0 {
			skipped := top.skipped
			if !skipped {
				s.dead[top.key()] = true
			}
			s.truncate(len(s.path) - 1)
			if len(s.path) == 0 {
				if skipped {
					return restarts
				}
				return exhausted
			}
			if skipped {
				s.path[len(s.path)-1].skipped = true
			}
			s.returnTo(len(s.path) - 1)
			continue
		}
		core := s.takeChoice(top)
		switch s.step(core) {
		case found:
			return found
		case continues:
		default:
			s.result.Attempts++
			s.urge = urge{}
			s.keepBest()
			if !s.repair(core) && len(s.path[len(s.path)-1].choices) > 0 {
				s.returnTo(len(s.path) - 1)
			}
		}
	}
}

// manyPlaces is the share of the places that new ones have to exceed for the search to begin anew.
const manyPlaces = 4

// forget forgets what was found out about states, which have more reads now.
func (s *search) forget() {
	s.dead = map[uint64]bool{}
	s.best, s.furthest = nil, 0
}

// refine adds the places that were found since the search began. It has passed some of them without a stop.
func (s *search) refine() {
	s.forget()
	s.setPlaces(s.sharing.at)
	for i := range s.path {
		s.path[i].skipped = true
	}
}

// keepBest keeps the moves up to the last node if the threads got further than in any attempt before.
func (s *search) keepBest() {
	total := 0
	for _, n := range s.path[len(s.path)-1].done {
		total += n
	}
	if total <= s.furthest {
		return
	}
	s.furthest, s.best = total, s.best[:0]
	for i := range s.path[:len(s.path)-1] {
		s.best = append(s.best, s.path[i].move)
	}
}

// repeatBest repeats a part of the best attempt, of random length; every second search begins without.
func (s *search) repeatBest() {
	if s.style != random || len(s.best) == 0 || s.draw.Below(2) == 0 {
		return
	}
	left := len(s.best) >> s.draw.Below(8)
	for _, core := range s.best[:len(s.best)-min(len(s.best), s.draw.Remainder(left+1))] {
		top := &s.path[len(s.path)-1]
		i := slices.Index(top.choices, core)
		if i < 0 {
			return
		}
		top.choices = slices.Delete(top.choices, i, i+1)
		if s.step(core) != continues {
			s.returnTo(len(s.path) - 1)
			return
		}
	}
}

// takeChoice takes the next core to move from a node.
func (s *search) takeChoice(x *node) int {
	i := 0
	if s.urge.active {
		i = max(0, slices.Index(x.choices, s.urge.core))
	}
	core := x.choices[i]
	x.choices = slices.Delete(x.choices, i, i+1)
	return core
}

// urge has a core move first: until its thread is at an index of its path, or until it has written to a cell.
type urge struct {
	active bool
	core   int
	route  int
	index  int
	cell   uint64 // 0: none
	moves  int    // at most
}

// mostUrged is how many moves of a core an urge lasts at most.
const mostUrged = 200

// noteUrged ends the urge if the last move has done what it is for.
func (s *search) noteUrged(p *position, accesses []access) {
	if !s.urge.active {
		return
	}
	s.urge.moves--
	over := s.urge.moves == 0
	if s.urge.cell == 0 {
		over = over || p.done[s.urge.route] > s.urge.index
	} else {
		over = over || slices.Contains(accesses, access{s.urge.cell, true})
	}
	if over {
		s.urge = urge{}
	}
}

// repair changes the order of a read of the thread that left its path and a write: the read may have been
// too late, or too early. It reports whether it has returned to a node; if not, the search
// continues with the last one.
func (s *search) repair(core int) bool {
	top := len(s.path) - 1
	route := s.cores[core].turns[s.path[top].turns[core]].route
	if s.draw.Below(4) == 0 {
		return false
	}
	// The reads of the thread, the last ones first.
	for n, passed := top, 0; n >= 0 && passed < 64; n-- {
		x := &s.path[n]
		if x.move != core && s.cores[x.move].turns[x.turns[x.move]].route != route {
			continue
		}
		for i := len(x.accesses) - 1; i >= 0; i-- {
			if x.accesses[i].store {
				continue
			}
			passed++
			if s.draw.Below(3) > 0 {
				continue
			}
			if s.draw.Below(2) == 0 && s.readEarlier(n, route, x.accesses[i].cell) {
				return true
			}
			if s.readLater(n, x.accesses[i].cell) {
				return true
			}
		}
	}
	return false
}

// readEarlier lets a thread read a cell before a write to it by another one: the last one, or, with half the
// probability each, those before.
func (s *search) readEarlier(n, route int, cell uint64) bool {
	core, index := s.path[n].move, s.path[n].done[route]
	for w := n - 1; w >= 0; w-- {
		x := &s.path[w]
		if s.cores[x.move].turns[x.turns[x.move]].route == route || !slices.Contains(x.accesses, access{cell, true}) {
			continue
		}
		if !slices.Contains(x.choices, core) || s.draw.Below(2) == 0 {
			continue
		}
		s.jump(w, urge{active: true, core: core, route: route, index: index, moves: mostUrged})
		return true
	}
	return false
}

// readLater lets another core write to a cell before the move from a node reads it.
func (s *search) readLater(n int, cell uint64) bool {
	x := &s.path[n]
	if len(x.choices) == 0 {
		return false
	}
	s.jump(n, urge{active: true, core: x.choices[s.draw.Remainder(len(x.choices))], cell: cell, moves: mostUrged})
	return true
}

// jump returns to a node.
func (s *search) jump(n int, u urge) {
	if n < len(s.path)-1 {
		s.path[n].skipped = true
	}
	s.truncate(n + 1)
	s.returnTo(n)
	s.urge = u
}

// restore returns the machine to a snapshot.
func (s *search) restore(x *machine.Snapshot, stdout, stderr int, before arch.ThreadID) {
	s.stage.m.Restore(x)
	s.stage.stdout.Truncate(stdout)
	s.stage.stderr.Truncate(stderr)
	s.stage.policy = mover{before: before}
	s.stage.m.Cluster().SwitchPolicy(&s.stage.policy)
}

// returnTo returns the machine to the state of a node.
func (s *search) returnTo(n int) {
	from := n
	for s.path[from].snap == nil {
		from--
	}
	s.restore(s.path[from].snap, s.path[from].stdout, s.path[from].stderr, s.path[from].before)
	for i := from; i < n; i++ {
		x := &s.path[i]
		t := &s.cores[x.move].turns[x.turns[x.move]]
		s.stage.move(&s.routes[t.route], s.cores[x.move].core, x.done[t.route], x.target, nil)
		s.result.Moves++
	}
}

// push adds the state of the machine.
func (s *search) push(p position, always bool) {
	x := node{position: p, stdout: s.stage.stdout.Len(), stderr: s.stage.stderr.Len(), before: s.stage.policy.before}
	x.choices = s.order(&x.position)
	if always || len(s.path)%nodesPerSnapshot == 0 {
		x.snap = s.stage.m.Snapshot()
	}
	if old := len(s.path) - recentNodes; old > 0 && old%nodesPerOldSnapshot != 0 && s.path[old].snap != nil {
		s.path[old].snap.Release()
		s.path[old].snap = nil
	}
	x.changes, s.changes = s.changes, nil
	s.path = append(s.path, x)
}

// order returns the cores that have turns left, the preferred ones first.
func (s *search) order(p *position) []int {
	var all, waiting []int
	for c := range s.cores {
		if p.turns[c] == len(s.cores[c].turns) {
			continue
		}
		switch t := s.routes[s.cores[c].turns[p.turns[c]].route].thread; {
		case follow.IsRunnable(s.stage.m.Cluster(), t):
			all = append(all, c)
		case s.stage.exists(t):
			waiting = append(waiting, c)
		}
	}
	if len(all) == 0 {
		all = waiting // for a time
	}
	pace := func(c int) int {
		t := &s.cores[c].turns[p.turns[c]]
		return int(t.started) + t.length - (t.end - p.done[t.route])
	}
	slices.SortStableFunc(all, func(a, b int) int { return pace(a) - pace(b) })
	first := -1
	switch {
	case s.style == steady || s.style == random && s.draw.Below(s.keep) > 0:
		first = slices.Index(all, p.last)
	case s.style == random && len(all) > 1:
		first = s.draw.Remainder(len(all))
	}
	if first > 0 {
		c := all[first]
		all = slices.Insert(slices.Delete(all, first, first+1), 0, c)
	}
	return all
}

// step lets a core move from the last node.
func (s *search) step(core int) outcome {
	o := s.tryMove(core)
	s.undo(s.changes)
	s.changes = nil
	return o
}

func (s *search) tryMove(core int) outcome {
	top := &s.path[len(s.path)-1]
	t := &s.cores[core].turns[top.turns[core]]
	r := &s.routes[t.route]
	at := top.done[t.route]
	target := min(r.nextPlace(at), t.end)
	top.move, top.target, top.accesses = core, target, nil
	p := top.clone()
	for i := range s.routes {
		if s.stage.exists(s.routes[i].thread) {
			s.sharing.births.NoteThread(s.routes[i].thread)
		}
	}
	s.result.Moves++
	m := s.stage.move(r, s.cores[core].core, at, target, func(entries []memlog.Entry) { s.noteAccesses(&p, t.route, entries, &top.accesses) })

	for _, pc := range m.calls {
		s.sharing.at[pc] = true
		p.calls = rand.Mix(p.calls ^ p.reads[t.route])
		p.reads[t.route] = rand.Mix(p.reads[t.route] ^ p.calls)
		top.accesses = append(top.accesses, access{kernelCell, true}, access{kernelCell, false})
	}
	p.done[t.route], p.last = m.reached, core
	p.ran[t.route] += m.ran
	top.reached = p.ran[t.route]
	p.endTurns(s.recorded)
	s.noteUrged(&p, top.accesses)
	if s.stage.m.Done() {
		if s.fails() {
			s.keepSteps(nil)
			return found
		}
		return restarts
	}
	if m.ran == 0 || s.stage.policy.strayed || p.done[t.route] < len(r.path) && m.pc != r.pc(p.done[t.route]) {
		return restarts
	}
	if s.dead[p.key()] {
		return restarts
	}
	if s.isOver(&p) {
		return s.end(&p)
	}
	s.push(p, false)
	return continues
}

func (s *search) noteAccesses(p *position, thread int, entries []memlog.Entry, list *[]access) {
	for i := range entries {
		e := &entries[i]
		store := e.Kind == memlog.Store
		first, last := cellsOf(e)
		for n := first; n <= last; n++ {
			if cell := s.stage.process | n; s.sharing.note(s.routes[thread].thread, cell, arch.Addr(e.PC), store) {
				s.note(p, thread, cell, store)
				*list = append(*list, access{cell, store})
			}
		}
	}
}

func (s *search) fails() bool {
	return s.Fails(s.stage.m, s.stage.stdout.Bytes(), s.stage.stderr.Bytes())
}

// isOver reports whether all threads are at the ends of their paths.
func (s *search) isOver(p *position) bool {
	for c := range s.cores {
		if p.turns[c] < len(s.cores[c].turns) {
			return false
		}
	}
	return true
}

// mostAfterPaths is how many instructions the threads may execute after their paths until they fail.
const mostAfterPaths = 100_000

// end lets one thread after the other continue after its path, until the program fails: the recorded run may
// have ended by an instruction that was not completed.
func (s *search) end(p *position) outcome {
	s.push(*p, true)
	n := len(s.path) - 1
	defer func() { s.truncate(n) }()
	s.path[n].choices = nil
	for i := range s.routes {
		thread := s.routes[i].thread
		if !s.stage.exists(thread) {
			continue
		}
		last := []arch.ThreadID{thread}
		for k := range s.routes {
			if k != i {
				last = append(last, s.routes[k].thread)
			}
		}
		for _, t := range last {
			if s.stage.m.Done() {
				break
			}
			s.stage.continueThread(t, mostAfterPaths)
			s.result.Moves++
		}
		s.stage.findStandstill()
		if s.stage.m.Done() && s.fails() {
			s.keepSteps(last)
			return found
		}
		s.returnTo(n)
	}
	return restarts
}

// keepSteps keeps the moves that have led to the failure.
func (s *search) keepSteps(last []arch.ThreadID) {
	first := &s.routes[0]
	s.result.Steps = []guided.Step{{Thread: first.thread, Core: s.firstCore, Since: s.first.ran[0], Until: guided.Place}}
	for i := range s.path {
		x := &s.path[i]
		if len(last) > 0 && i == len(s.path)-1 {
			break
		}
		t := &s.cores[x.move].turns[x.turns[x.move]]
		step := guided.Step{Thread: s.routes[t.route].thread, Core: s.cores[x.move].core, Since: x.reached, Until: guided.Place}
		if n := len(s.result.Steps); n > 0 && s.result.Steps[n-1].Thread == step.Thread && s.result.Steps[n-1].Core == step.Core {
			s.result.Steps[n-1] = step
		} else {
			s.result.Steps = append(s.result.Steps, step)
		}
	}
	if len(last) == 0 {
		for i := range s.routes {
			last = append(last, s.routes[i].thread)
		}
	}
	s.result.Last = last
}
