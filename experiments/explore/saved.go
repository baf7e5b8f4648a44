package explore

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// saved is the state of a runner between two events of an execution, from which others start that have the events
// before in common. The saved states of a runner are of the path of its latest execution, so that its history and its
// path begin with those of each of them.
type saved struct {
	depth          int // the number of events before
	machine        *machine.Snapshot
	threads        []*thread
	stdout, stderr int
	notes          notes
	allowed        uint64
	uses           int // the length of the journal of sharing
	births         map[arch.ThreadID]birth
	born           map[arch.ThreadID]uint32
}

// A state is saved where an execution leaves the path of the one before, which other executions will do there, too,
// unless it is near another one: to save and restore a state takes as long as some events.
const (
	savedApart = 12 // events between two saved states, at least
	mostSaved  = 48
)

// keptFor returns the latest state that is of the path to a branch, and drops all others; nil if no state is left.
func (r *runner) keptFor(branch []dpor.Process) *saved {
	for n := len(r.saved); n > 0; n-- {
		s := r.saved[n-1]
		if r.savedFor == r.sharing.version && s.depth <= len(branch) && slices.Equal(r.path[:s.depth], branch[:s.depth]) {
			return s
		}
		s.machine.Release()
		r.saved = r.saved[:n-1]
	}
	return nil
}

// dropSaved drops all saved states.
func (r *runner) dropSaved() {
	for _, s := range r.saved {
		s.machine.Release()
	}
	r.saved = r.saved[:0]
}

// isToBeSaved reports whether the state before the next event is to be saved.
func (r *runner) isToBeSaved() bool { return len(r.history) == r.saveAt }

// planSave decides where the execution that begins saves its state: at the branch.
func (r *runner) planSave(branch, begin int) {
	r.saveAt = -1
	if r.start != nil && len(r.saved) < mostSaved && branch-begin >= savedApart {
		r.saveAt = branch
	}
}

// save saves the state, in which no event is being executed.
func (r *runner) save() {
	r.saveAt = -1
	s := &saved{
		depth: len(r.history), stdout: r.stdout.Len(), stderr: r.stderr.Len(), notes: r.notes, allowed: r.allowed,
		uses: len(r.sharing.journal), births: maps.Clone(r.sharing.births), born: maps.Clone(r.sharing.born),
		threads: cloneThreads(r.order), machine: r.m.Snapshot(),
	}
	r.savedFor = r.sharing.version
	r.saved = append(r.saved, s)
}

// load continues from a saved state.
func (r *runner) load(s *saved) {
	r.m.Restore(s.machine)
	r.stdout.Truncate(s.stdout)
	r.stderr.Truncate(s.stderr)
	r.history, r.idle, r.path = r.history[:s.depth], r.idle[:s.depth], r.path[:s.depth]
	r.allowed = s.allowed
	r.order = cloneThreads(s.threads)
	clear(r.threads)
	for _, t := range r.order {
		r.threads[t.id] = t
	}
	r.notes.add(s.notes)
	r.sharing.goBack(s)
}

func cloneThreads(list []*thread) []*thread {
	n := make([]*thread, len(list))
	for i, t := range list {
		c := *t
		c.after, c.commits, c.stored = slices.Clone(t.after), slices.Clone(t.commits), maps.Clone(t.stored)
		c.visits = visits{slices.Clone(t.list), slices.Clone(t.made), slices.Clone(t.reads)}
		n[i] = &c
	}
	return n
}

// changedUse is a use of a cell by a thread before it changed; none: the thread had not used it.
type changedUse struct {
	cell   *usedCell
	number int
	before use
	none   bool
}

// goBack makes the uses and the creations of threads those of a saved state of the same execution.
func (s *sharing) goBack(to *saved) {
	s.grown = false
	for i := len(s.journal) - 1; i >= to.uses; i-- {
		c := &s.journal[i]
		if c.none {
			c.cell.uses = c.cell.uses[:c.number]
		} else {
			c.cell.uses[c.number] = c.before
		}
	}
	s.journal = s.journal[:to.uses]
	clear(s.births)
	maps.Copy(s.births, to.births)
	clear(s.born)
	maps.Copy(s.born, to.born)
}
