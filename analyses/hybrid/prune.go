package hybrid

import "github.com/heddle-dmt/heddle/analyses/races"

// Constraint orders two dynamic instructions of a run: First before Second.
type Constraint struct {
	First  races.Instance `json:"first"`
	Second races.Instance `json:"second"`
}

// Segment is a part of a thread's run without synchronization operations.
type Segment struct {
	Thread int
	Syncs  uint64
}

func segmentOf(i races.Instance) Segment { return Segment{i.Thread, i.Syncs} }

// Subsumer prunes constraints as PEREGRINE does (section 3.1, figure 7): one
// between two segments is left out if another, from the same place or later in
// the first segment to the same place or earlier in the second, is there
// already.
type Subsumer struct {
	latest map[[2]Segment]uint64 // where in the first segment the last one kept starts
}

// NewSubsumer makes one that has kept nothing.
func NewSubsumer() *Subsumer { return &Subsumer{latest: map[[2]Segment]uint64{}} }

// Add takes a constraint and returns whether it is needed. Constraints come in the order of their
// second instances, and of those with the same, in the falling order of their first ones.
func (s *Subsumer) Add(c Constraint) bool {
	between := [2]Segment{segmentOf(c.First), segmentOf(c.Second)}
	// The constraints that were kept end at earlier places in the second segment.
	if at, ok := s.latest[between]; ok && c.First.At <= at {
		return false
	}
	s.latest[between] = c.First.At
	return true
}
