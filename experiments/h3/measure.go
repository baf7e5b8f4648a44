package h3

import (
	"io"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Size is the size of a recording, as H3's tables 2 and 3 count it.
type Size struct {
	Threads int
	// Instructions were executed, Blocks of them ended with a branch or a turn, and
	// Bytes are the packets of all branch traces.
	Instructions, Blocks, Bytes uint64
}

// Size measures the recording.
func (r *Recording) Size() (Size, error) {
	s := Size{Threads: len(r.profile.Threads)}
	for i := range r.profile.Threads {
		for _, slice := range r.profile.Threads[i].Turns {
			for _, b := range slice.Blocks {
				s.Blocks++
				s.Instructions += uint64(len(r.profile.Blocks[b].Instructions))
			}
		}
	}
	t, err := trace.Open(r.branches)
	if err != nil {
		return s, err
	}
	defer t.Close()
	for _, id := range t.IDs(trace.PT) {
		n, err := io.Copy(io.Discard, t.Bytes(trace.Key{Kind: trace.PT, ID: id}))
		if err != nil {
			return s, err
		}
		s.Bytes += uint64(n)
	}
	return s, nil
}

// Clauses counts the constraints of an outcome's trace in an encoding as H3's table 4
// does: all of them, and those of reads and writes.
func (out *Outcome) Clauses(encoding string) (total, readWrite int, err error) {
	e := map[string]constraints.Encoding{"clap": constraints.CLAP{}, "h3": constraints.Cores{}, "heddle": constraints.Pruned{}}[encoding]
	system, err := constraints.New(out.Trace.Trace, out.Model, e, 0)
	if err != nil {
		return 0, 0, err
	}
	for _, f := range constraints.Families() {
		total += system.Clauses(f)
	}
	return total, system.Clauses(constraints.ReadWrite), nil
}
