package constraints

import "github.com/heddle-dmt/heddle/analyses/h3/model"

// Partial is a System with the read-write constraints of the requested reads only. The whole system
// implies everything that it implies.
type Partial struct {
	*System
	builder *systemBuilder
	matcher matcher
	// at says in which cells an event reads: the cell, and which of its reads it is.
	at map[model.ID][][2]int
	// has are the reads whose constraints are there.
	has map[model.ID]bool
}

// NewPartial makes the system of a trace that Check accepts, without read-write
// constraints. The encoding is CLAP or Cores, whose constraints are about one read
// each. Limit is as in New.
func NewPartial(t *model.Trace, m model.MemoryModel, e Encoding, limit int) (*Partial, error) {
	b, err := newBuilder(t, m, e, limit)
	if err != nil {
		return nil, err
	}
	p := &Partial{System: b.System, builder: b, matcher: e.(matcher), at: map[model.ID][][2]int{}, has: map[model.ID]bool{}}
	for c := range b.cells {
		for i := range b.cells[c].Reads {
			id := b.cells[c].Reads[i].Event
			p.at[id] = append(p.at[id], [2]int{c, i})
		}
	}
	return p, nil
}

// Add adds the read-write constraints of an event, and returns them; none if they were added
// before.
func (p *Partial) Add(id model.ID) ([]*Formula, error) {
	if p.has[id] {
		return nil, nil
	}
	p.has[id] = true
	before := len(p.Parts[ReadWrite])
	for _, at := range p.at[id] {
		if err := p.builder.addOneRead(p.matcher, &p.builder.cells[at[0]], at[1]); err != nil {
			return nil, err
		}
	}
	return p.Parts[ReadWrite][before:], nil
}
