package slice

import (
	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
)

// Input is a run to slice.
type Input struct {
	// Trace is what its threads executed.
	Trace *path.Trace
	// Events are those of its schedule.
	Events *simplify.Events
	// Image is the program, and Models what it calls.
	Image  *cfg.Image
	Models cfg.Models
}

// Mode says how it is sliced.
type Mode uint8

// Modes. The first four are the columns of PEREGRINE's table 5.
const (
	// Simplified slices the program that the schedule leaves.
	Simplified Mode = iota
	// Plain slices with one clone of each function.
	Plain
	// Lower takes only what is required to reach the events: a lower bound, which
	// ignores data and races.
	Lower
	// Upper takes everything.
	Upper
	// TERN takes branches with a synchronization operation between them and their
	// post-dominators.
	TERN
)

// Modes lists the modes' names, in the order of their numbers.
func Modes() []string { return []string{"simplified", "plain", "lower", "upper", "tern"} }

// Options say how a run is sliced.
type Options struct {
	Mode  Mode
	Clone simplify.Options
	// Marks has the Slice keep which steps are in it.
	Marks bool
}

// DefaultOptions are those for preconditions.
func DefaultOptions() Options { return Options{Clone: simplify.DefaultOptions()} }

// Stats counts.
type Stats struct {
	// Instructions were executed, of which Sliced are in the slice.
	Instructions, Sliced uint64
	// Branches and Constraints are those of the trace that depend on inputs, and
	// KeptBranches and KeptConstraints those that are in the slice: targets of jumps
	// among the branches.
	Branches, KeptBranches       uint64
	Constraints, KeptConstraints uint64
	// Reasons says why constraints are kept.
	Reasons Counts
	// Races is how many pairs of concurrent regions may race but for what is kept,
	// and Regions how many regions there are.
	Races, Regions uint64
	// Contexts is how many clones there are, Sets how many sets of addresses.
	Contexts, Sets int
	// Stores counts stores whose addresses are kept since they may be to what the
	// slice reads.
	Stores uint64
}

// Why says what of a step is in the slice.
type Why uint8

// What of a step may be in the slice.
const (
	// Value: something that it computes.
	Value Why = 1 << iota
	// Outcome: where it goes at its end.
	Outcome
	// Place: the addresses that it accesses.
	Place
	// Target: it is an event.
	Target
)

// Slice is what of a run a schedule depends on.
type Slice struct {
	Stats Stats
	// Run and Alias are what was found on the way; Alias is nil without.
	Run   *simplify.Run
	Alias *alias.Result

	kept    [][]path.Constraint // by thread
	because [][]Reason          // likewise
	marks   [][]Why
}

// Constraints are those of a thread, by its place in the trace, that are kept, in order.
func (s *Slice) Constraints(thread int) []path.Constraint { return s.kept[thread] }

// Reasons are those for which Constraints of a thread are kept; of Upper none.
func (s *Slice) Reasons(thread int) []Reason { return s.because[thread] }

// Why is what of a step of a thread is in the slice, if Options.Marks was set.
func (s *Slice) Why(thread, step int) Why { return s.marks[thread][step] }

// Make slices a run.
func Make(in *Input, o Options) *Slice { return Prepare(in, o).Slice() }

// Prepared is a run ready to be sliced: what the schedule leaves of its program, and
// what that may access.
type Prepared struct {
	options Options
	slice   *Slice
}

// Prepare simplifies a run's program, and analyzes its accesses if the mode needs that.
func Prepare(in *Input, o Options) *Prepared {
	if o.Mode == Plain {
		o.Clone.Merge = true
	}
	graph := cfg.Build(in.Image, in.Models, simplify.Observe(in.Trace, in.Image))
	s := &Slice{Run: simplify.Follow(in.Trace, graph, in.Events, o.Clone)}
	s.kept, s.because = make([][]path.Constraint, len(in.Trace.Threads)), make([][]Reason, len(in.Trace.Threads))
	if o.Mode == Simplified || o.Mode == Plain {
		drop(s, o)
		s.Alias = alias.Analyze(s.Run)
		s.Stats.Sets = s.Alias.Sets()
	}
	s.Stats.Contexts = len(s.Run.Contexts)
	return &Prepared{o, s}
}

// Slice slices the run, once.
func (p *Prepared) Slice() *Slice {
	s := p.slice
	if p.options.Mode == Upper {
		s.everything()
		return s
	}
	w := newWalk(s, p.options)
	w.alias, w.sides = s.Alias, newSides(s.Run, s.Alias)
	if s.Alias != nil {
		r := findRaces(s, w.sides)
		for i, t := range w.threads {
			t.regions = &regionCursor{races: r, list: r.threads[i]}
		}
	}
	w.back()
	return s
}

// everything keeps all constraints.
func (s *Slice) everything() {
	for i, th := range s.Run.Trace.Threads {
		s.Stats.Instructions += th.Instructions()
		for c := th.Cursor(0); c.Next(); {
			s.kept[i] = append(s.kept[i], c.Constraints...)
			for k := range c.Constraints {
				s.Stats.count(&c.Constraints[k])
			}
		}
	}
	s.Stats.KeptBranches, s.Stats.KeptConstraints, s.Stats.Sliced = s.Stats.Branches, s.Stats.Constraints, s.Stats.Instructions
}

// count counts a constraint of the trace.
func (s *Stats) count(c *path.Constraint) {
	s.Constraints++
	if isBranch(c.Kind) {
		s.Branches++
	}
}

// isBranch tells constraints on where a thread goes.
func isBranch(k exec.Kind) bool { return k == exec.Branch || k == exec.Target }

// Sites are the sets of the loads and stores of a block that a context executed, in
// their order there.
func (s *Slice) Sites(c *simplify.Context, b *path.Block) []alias.Set {
	list := make([]alias.Set, len(b.Sites))
	siteSets(s.Run, s.Alias, c, b, list)
	return list
}
