package constraints

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/errs"
)

// Family is a part of the formula.
type Family uint8

// The families of H3 section 3.3.
const (
	Path Family = iota
	Bug
	Sync
	MemoryOrder
	ReadWrite
	families
)

func (f Family) String() string {
	return [...]string{"path", "bug", "sync", "memory order", "read-write"}[f]
}

// Families lists all.
func Families() []Family { return []Family{Path, Bug, Sync, MemoryOrder, ReadWrite} }

// System is the formula of a trace: the conjunction of all its parts.
type System struct {
	Trace    *model.Trace
	Model    model.MemoryModel
	Encoding string
	// Parts are the conjuncts, by family.
	Parts [families][]*Formula
	// Clocks is how many there are; the first are those of the events.
	Clocks int
	// Reads counts the reads of cells that are matched with writes, and Matches the pairs of a read
	// and a write, with Start counted as a write.
	Reads, Matches int
}

// Clauses counts a family as Formula.Clauses does.
func (s *System) Clauses(f Family) int {
	n := 0
	for _, p := range s.Parts[f] {
		n += p.Clauses()
	}
	return n
}

// Atoms counts the comparisons of a family.
func (s *System) Atoms(f Family) int {
	n := 0
	for _, p := range s.Parts[f] {
		n += p.Atoms()
	}
	return n
}

// Encoding makes the read-write constraints of a system, and says which orders may
// be taken as given.
type Encoding interface {
	// Name is for people, and for the command line.
	Name() string
	// Supports is nil, or says why the encoding cannot be used under a model.
	Supports(model.MemoryModel) error
	// givenOrders are the edges between events that the encoding takes as given.
	givenOrders(t *model.Trace, m model.MemoryModel) []model.Edge
	// addReadWrites adds the read-write constraints.
	addReadWrites(b *systemBuilder) error
}

// Encodings lists all, the simplest first.
func Encodings() []Encoding { return []Encoding{CLAP{}, Cores{}, Pruned{}} }

// DefaultLimit is how many comparisons the read-write constraints may have: some
// gigabytes.
const DefaultLimit = 30_000_000

var errTooLarge = errs.Define("reproduce-constraints-too-large",
	"the {encoding} encoding has more than {limit} comparisons in its read-write constraints",
	"The number of constraints grows with the cube of the length of the trace in this encoding.",
	"Use --encoding heddle, or record a shorter run.")

// New makes the system of a trace that Check accepts. Limit bounds the comparisons
// of the read-write constraints; 0 is DefaultLimit.
func New(t *model.Trace, m model.MemoryModel, e Encoding, limit int) (*System, error) {
	b, err := newBuilder(t, m, e, limit)
	if err != nil {
		return nil, err
	}
	if b.graph != nil {
		if err := e.addReadWrites(b); err != nil {
			return nil, err
		}
	}
	return b.System, nil
}

// newBuilder makes a system without its read-write constraints. There is no graph if the
// orders contradict each other, which the system then says.
func newBuilder(t *model.Trace, m model.MemoryModel, e Encoding, limit int) (*systemBuilder, error) {
	if err := e.Supports(m); err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	b := &systemBuilder{
		System: &System{Trace: t, Model: m, Encoding: e.Name(), Clocks: len(t.Events)},
		trace:  t, pool: t.Pool, cells: t.Cells(), limit: limit,
	}
	edges := append(t.ProgramOrder(m), t.ForkJoin()...)
	edges = append(edges, e.givenOrders(t, m)...)
	for _, edge := range edges {
		b.addPart(MemoryOrder, eventBefore(edge.From, edge.To))
	}
	graph, err := model.NewGraph(len(t.Events), edges)
	if err != nil {
		b.addPart(MemoryOrder, alwaysFalse)
		return b, nil
	}
	b.graph = graph
	b.addConditions()
	b.addSynchronization()
	return b, nil
}

// systemBuilder makes a system.
type systemBuilder struct {
	*System
	trace *model.Trace
	pool  *symbolic.Pool
	cells []model.Cell
	graph *model.Graph
	// limit bounds the comparisons of the read-write constraints, and atoms counts them.
	limit, atoms int
	selectors    int
}

func (b *systemBuilder) addPart(f Family, p *Formula) {
	if p != alwaysTrue {
		b.Parts[f] = append(b.Parts[f], p)
	}
}

// addReadWrite adds a part to the family that may become too large.
func (b *systemBuilder) addReadWrite(p *Formula) error {
	b.addPart(ReadWrite, p)
	if b.atoms += p.Atoms(); b.atoms > b.limit {
		return errTooLarge.New(b.Encoding, b.limit)
	}
	return nil
}

// addConditions adds those of paths and of the bug, and that nothing has happened that
// cannot.
func (b *systemBuilder) addConditions() {
	for _, c := range b.trace.Path {
		b.addPart(Path, truthOf(c.Expr))
	}
	for _, c := range b.trace.Bug {
		b.addPart(Bug, truthOf(c.Expr))
	}
	if len(b.trace.ImpossibleEvents()) > 0 {
		b.addPart(Sync, alwaysFalse)
	}
}

// newSelector is a fresh unknown truth.
func (b *systemBuilder) newSelector(what string) *symbolic.Expr {
	b.selectors++
	return b.pool.Symbol(fmt.Sprintf("%s%d", what, b.selectors), 1)
}
