package enforce

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Plan is a schedule made ready to be followed, by any number of runs: it does not
// change.
type Plan struct {
	s     *event.Schedule
	names map[string]int
	own   [][]int // by thread, the positions of its operations
	// posts and waits are the constraints whose first or second point is the
	// operation at a position as a whole.
	posts, waits map[int][]int
	actions      [][]action          // by thread, in the order in which the thread reaches them
	work         [][]instrumentation // by thread and action
	waiter       []int32             // by constraint, the thread of its second point, or turnWaits
	clock        []arch.Cycles       // the time that clocks show at each position
	memory       bool                // calls that change the address space have positions
	// alone is the position from which on a schedule for other inputs need not be
	// followed.
	alone int
}

// SharedInSnapshot marks that copies of an Enforcer share it.
func (*Plan) SharedInSnapshot() {}

type actionKind uint8

const (
	post    actionKind = iota // the first instruction of a constraint was executed
	wait                      // before the second one
	deliver                   // where the thread gets a signal
	halt                      // where the thread was at the end of the run
)

// action is an action of a thread after a number of operations and then a number of instructions. A
// schedule may have tens of thousands.
type action struct {
	at       uint64
	branches uint64    // that it has gone through since its operation
	pc       arch.Addr // that it is at then; 0: not known
	done     int32
	// accesses is how many accesses of the next instruction are done there, too.
	accesses uint8
	// of is the number of the constraint, or the position of the signal.
	of   int32
	kind actionKind
	// look reports that it is the first wait after its operation: the thread stops there in any
	// case, so that its position can be checked.
	look bool
}

// NewPlan makes a schedule ready; syncOnly leaves its constraints out.
func NewPlan(s *event.Schedule, syncOnly bool) *Plan {
	p := &Plan{
		s: s, names: map[string]int{}, own: make([][]int, len(s.Threads)), actions: make([][]action, len(s.Threads)), work: make([][]instrumentation, len(s.Threads)),
		posts: map[int][]int{}, waits: map[int][]int{}, alone: len(s.Operations),
	}
	if s.Portable {
		p.alone = s.Alone()
	}
	for i, name := range s.Threads {
		p.names[name] = i
	}
	for position := range s.Operations {
		o := &s.Operations[position]
		n := o.Thread
		if o.Part == event.SignalPart && o.Result >= 0 {
			p.actions[n] = append(p.actions[n], action{done: int32(len(p.own[n])), at: uint64(o.Result), kind: deliver, of: int32(position), pc: o.Writes[0].Addr})
		}
		p.own[n] = append(p.own[n], position)
		p.memory = p.memory || o.Part == event.SystemCall && AddressSpace(o.Number)
		if position > 0 {
			p.clock = append(p.clock, max(p.clock[position-1], s.Operations[position].At))
		} else {
			p.clock = append(p.clock, s.Operations[position].At)
		}
	}
	if !syncOnly {
		p.reserveActions()
		for c := range s.Constraints {
			p.addConstraint(c)
		}
	}
	for n := range p.actions {
		p.sortActions(n)
	}
	return p
}

// turnWaits stands for a constraint for which an operation as a whole waits.
const turnWaits = -1

// reserveActions makes room for the actions: there are two for each constraint, and often as
// many for each thread.
func (p *Plan) reserveActions() {
	share := 2 * len(p.s.Constraints) / max(1, len(p.actions))
	for n := range p.actions {
		p.actions[n] = slices.Grow(p.actions[n], share+share/8)
	}
	p.waiter = make([]int32, len(p.s.Constraints))
}

// addConstraint adds the actions of a constraint.
func (p *Plan) addConstraint(c int) {
	first, second := &p.s.Constraints[c].First, &p.s.Constraints[c].Second
	if first.PC == 0 && !first.Ends {
		at := p.own[first.Thread][first.Done]
		p.posts[at] = append(p.posts[at], c)
	} else {
		a := action{
			done: int32(first.Done), at: first.Instructions + max(1, first.Span), branches: first.Branches, kind: post,
			of: int32(c), accesses: first.Accesses,
		}
		if first.Accesses > 0 {
			a.at, a.pc = first.Instructions, first.PC
		}
		if first.Ends {
			a.kind, a.at, a.pc = halt, first.Instructions, first.PC
		}
		p.actions[first.Thread] = append(p.actions[first.Thread], a)
	}
	if second.PC == 0 && !second.Ends {
		at := p.own[second.Thread][second.Done]
		p.waits[at] = append(p.waits[at], c)
		p.waiter[c] = turnWaits
		return
	}
	p.waiter[c] = int32(second.Thread)
	p.actions[second.Thread] = append(p.actions[second.Thread], action{
		done: int32(second.Done), at: second.Instructions, branches: second.Branches, kind: wait, of: int32(c), pc: second.PC,
		accesses: second.Accesses,
	})
}

// sortActions sorts a thread's actions: at one instruction, posts come before waits.
func (p *Plan) sortActions(n int) {
	list := p.actions[n]
	slices.SortFunc(list, compareActions)
	p.countSlots(n)
	looked := int32(-1)
	for i := range list {
		if a := &list[i]; a.kind == wait && a.done != looked {
			a.look, looked = true, a.done
		}
	}
}

func compareActions(a, b action) int {
	switch {
	case a.done != b.done:
		return cmp.Compare(a.done, b.done)
	case a.at != b.at:
		return cmp.Compare(a.at, b.at)
	case a.accesses != b.accesses:
		return cmp.Compare(a.accesses, b.accesses)
	case a.kind != b.kind:
		return cmp.Compare(a.kind, b.kind)
	}
	return cmp.Compare(a.of, b.of)
}

// instructionOf returns the instruction of an action's constraint, or 0, and how many times the
// thread reaches it.
func (p *Plan) instructionOf(a *action) (pc arch.Addr, occurrence uint64) {
	x := p.pointOf(a)
	if x == nil {
		return 0, 0
	}
	return x.PC, x.Occurrence
}

// pointOf returns the point of an action's constraint, or nil.
func (p *Plan) pointOf(a *action) *event.Point {
	switch a.kind {
	case deliver:
		return nil
	case wait:
		return &p.s.Constraints[a.of].Second
	}
	return &p.s.Constraints[a.of].First
}

// instrumentation is the work of a thread's instrumentation between its previous operation or action and
// an action: arrivals at its instruction, or, where they are not counted, calls of slot() at all instructions; and
// branches, unless the action is after a spin loop, whose branches have no fixed number.
type instrumentation struct{ arrivals, slots, branches uint64 }

// countSlots fills in the instrumentation before the actions of a thread. Where an action names the
// instruction and how many times the thread reaches it, slot() is called there alone; a wait in a spin loop
// calls it once. Otherwise it is called at each instruction. Branches are those since the action before.
func (p *Plan) countSlots(n int) {
	list := p.actions[n]
	p.work[n] = make([]instrumentation, len(list))
	counts := map[arch.Addr]uint64{}
	for i := range list {
		a := &list[i]
		last := &action{}
		if i > 0 && list[i-1].done == a.done {
			last = &list[i-1]
		} else {
			clear(counts)
		}
		x, branches := p.pointOf(a), a.branches-min(a.branches, last.branches)
		if x == nil || x.PC == 0 || x.Occurrence == 0 {
			p.work[n][i] = instrumentation{slots: a.at - last.at, branches: branches}
			continue
		}
		reached := x.Occurrence - min(x.Occurrence, x.Spins)
		p.work[n][i].arrivals = reached - min(reached, counts[x.PC])
		if x.Spins == 0 {
			p.work[n][i].branches = branches
		}
		counts[x.PC] = max(counts[x.PC], reached)
	}
}

// actionOf returns the i-th action of a thread, or nil.
func (p *Plan) actionOf(n, i int) *action {
	if i >= len(p.actions[n]) {
		return nil
	}
	return &p.actions[n][i]
}

// frequentStops are the instructions before which threads stop, sorted. Those where they
// seldom do are left out: all executions take longer there.
func (p *Plan) frequentStops() []arch.Addr {
	var t stopTally
	for _, actions := range p.actions {
		for i := range actions {
			if pc := actions[i].pc; pc != 0 {
				t.addStop(pc)
			}
		}
	}
	return t.frequentPlaces()
}

// Ordered reports whether a system call, outside of operations, has a position: not one that concerns
// the thread alone and has a result that does not change.
func Ordered(number uint64) bool {
	return !linux.Has(number, linux.ThreadLocal) || linux.Has(number, linux.TimeDependent)
}

// AddressSpace reports whether a system call changes a process's memory only. How often
// these calls are made depends on sizes of inputs, and their results on which thread's
// allocator comes first, which operations alone do not order: schedules of
// operations leave them out.
func AddressSpace(number uint64) bool { return linux.Has(number, linux.Allocates) }

// Forks reports whether a system call makes a thread or a process. A schedule has the thread
// that it makes begin before it returns, as it may for vfork.
func Forks(number uint64) bool { return linux.Has(number, linux.Forks) }

func isSleep(number uint64) bool { return linux.Has(number, linux.Sleeps) }

// isAnswered reports whether a system call returns its recorded result without being carried out: a
// thread that waits for a futex or sleeps waits for its turn anyway, and the time or a random
// number must be the recorded one.
func isAnswered(o *event.Operation) bool {
	return o.Number == linux.Futex || isSleep(o.Number) || len(o.Writes) > 0
}

// hasArbitraryResult reports whether the result of a system call says nothing about the order.
func hasArbitraryResult(number uint64) bool { return number == linux.Times }
