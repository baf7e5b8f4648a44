package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/internal/effort"
)

// Input is a run to slice.
type Input struct {
	// Trace is the block trace of its threads.
	Trace *blocktrace.Trace
	// Events are those of its schedule.
	Events *specialize.Events
	// Image is the program, and Models describe the functions that it calls.
	Image  *cfg.Image
	Models cfg.Models
}

// Mode is the way of slicing.
type Mode uint8

// Modes. The first four are the columns of PEREGRINE's table 5.
const (
	// Simplified slices the program specialized for the schedule.
	Simplified Mode = iota
	// Plain slices with one clone of each function.
	Plain
	// Lower keeps only what is required to reach the events: a lower bound, which ignores
	// data and races.
	Lower
	// Upper keeps everything.
	Upper
	// TERN keeps branches with a synchronization operation between them and their
	// post-dominators.
	TERN
)

// Modes lists the modes' names, in the order of their numbers.
func Modes() []string { return []string{"simplified", "plain", "lower", "upper", "tern"} }

// Options choose how a run is sliced.
type Options struct {
	Mode  Mode
	Clone specialize.Options
	// Marks has the Slice keep the membership of each step.
	Marks bool
	// Meter bounds the work; nil: no bound.
	Meter *effort.Meter
}

// DefaultOptions are those for preconditions.
func DefaultOptions() Options { return Options{Clone: specialize.DefaultOptions()} }

// Stats counts the parts of a slice.
type Stats struct {
	// Instructions were executed, of which Sliced are in the slice.
	Instructions, Sliced uint64
	// Branches and Constraints count the constraints of the trace, KeptBranches and
	// KeptConstraints those in the slice. Targets of jumps are branches.
	Branches, KeptBranches       uint64
	Constraints, KeptConstraints uint64
	// Reasons counts the kept constraints by reason.
	Reasons Counts
	// Races is the number of pairs of concurrent regions that may race without the kept
	// constraints, Regions the number of regions.
	Races, Regions uint64
	// Contexts is the number of clones, Sets the number of sets of addresses.
	Contexts, Sets int
	// Stores counts stores whose addresses are kept because they may write memory that the
	// slice reads.
	Stores uint64
}

// Membership is the set of parts of a step that are in the slice.
type Membership uint8

// Parts of a step.
const (
	// Value: a computed value.
	Value Membership = 1 << iota
	// Outcome: the successor at its end.
	Outcome
	// Address: the addresses that it accesses.
	Address
	// Target: it is an event.
	Target
)

// Slice is the part of a run that its schedule depends on.
type Slice struct {
	Stats Stats
	// Calls is the specialized run, Alias the result of the alias analysis, nil without.
	Calls *specialize.CallTrace
	Alias *alias.Result

	kept    [][]blocktrace.Constraint // by thread
	because [][]Reason                // by thread
	marks   [][]Membership
}

// Constraints returns the kept constraints of a thread, by its index in the trace, in
// order.
func (s *Slice) Constraints(thread int) []blocktrace.Constraint { return s.kept[thread] }

// Reasons returns the reasons for keeping Constraints of a thread; none in mode Upper.
func (s *Slice) Reasons(thread int) []Reason { return s.because[thread] }

// Membership returns the parts of a step that are in the slice, if Options.Marks was set.
func (s *Slice) Membership(thread, step int) Membership { return s.marks[thread][step] }

// Make slices a run.
func Make(in *Input, o Options) *Slice { return Prepare(in, o).Slice() }

// Slicer is a run ready to be sliced: its specialized program and the addresses of its
// accesses.
type Slicer struct {
	options Options
	slice   *Slice
}

// Prepare specializes a run's program, and analyzes its accesses if the mode needs it.
func Prepare(in *Input, o Options) *Slicer {
	if o.Mode == Plain {
		o.Clone.Merge = true
	}
	s := &Slice{Calls: makeGraph(in, o.Clone)}
	s.kept, s.because = make([][]blocktrace.Constraint, len(in.Trace.Threads)), make([][]Reason, len(in.Trace.Threads))
	if o.Mode == Simplified || o.Mode == Plain {
		dropBranches(s, o)
		s.Alias = alias.Analyze(s.Calls, o.Meter)
		s.Stats.Sets = s.Alias.NumSets()
	}
	s.Stats.Contexts = len(s.Calls.Contexts)
	return &Slicer{o, s}
}

// Slice slices the run. It may be called once.
func (p *Slicer) Slice() *Slice {
	s := p.slice
	if p.options.Mode == Upper {
		s.keepEverything()
		return s
	}
	w := newRunSlicer(s, p.options)
	w.alias, w.sides = s.Alias, newSideCache(s.Calls, s.Alias, p.options.Meter)
	if s.Alias != nil {
		r := findRaces(s, w.sides)
		for i, t := range w.threads {
			t.regions = &regionCursor{races: r, list: r.threads[i]}
		}
	}
	w.sliceRun()
	return s
}

// keepEverything keeps all constraints.
func (s *Slice) keepEverything() {
	for i, th := range s.Calls.Trace.Threads {
		s.Stats.Instructions += th.Instructions()
		for c := th.Cursor(0); c.Next(); {
			s.kept[i] = append(s.kept[i], c.Constraints...)
			for k := range c.Constraints {
				s.Stats.countConstraint(&c.Constraints[k])
			}
		}
	}
	s.Stats.KeptBranches, s.Stats.KeptConstraints, s.Stats.Sliced = s.Stats.Branches, s.Stats.Constraints, s.Stats.Instructions
}

// countConstraint counts a constraint of the trace.
func (s *Stats) countConstraint(c *blocktrace.Constraint) {
	s.Constraints++
	if isBranch(c.Kind) {
		s.Branches++
	}
}

// isBranch reports whether a kind is of constraints on a thread's path.
func isBranch(k concolic.Kind) bool { return k == concolic.Branch || k == concolic.Target }

// Sites returns the sets of the loads and stores of a block that a context executed, in
// their order there.
func (s *Slice) Sites(c *specialize.Context, b *blocktrace.Block) []alias.Set {
	list := make([]alias.Set, len(b.Sites))
	findSiteSets(s.Calls, s.Alias, c, b, list)
	return list
}
