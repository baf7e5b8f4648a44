package symtrace

import (
	"maps"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/flows"
)

// interactions are the effects that threads have on each other through system calls: those of the
// preceding pass, and of this one so far.
type interactions struct {
	flows       flows.Contents
	signals     map[uint64]bool // that were sent to the process
	descriptors map[uint64]descriptor
	lengths     map[uint64]uint64 // of files that are written
}

func newInteractions() interactions {
	return interactions{flows.Contents{}, map[uint64]bool{}, map[uint64]descriptor{}, map[uint64]uint64{}}
}

func (o interactions) clone() interactions {
	return interactions{o.flows.Clone(), maps.Clone(o.signals), maps.Clone(o.descriptors), maps.Clone(o.lengths)}
}

func (o interactions) equal(x interactions) bool {
	return o.flows.Equal(x.flows) && maps.Equal(o.signals, x.signals) && maps.Equal(o.descriptors, x.descriptors) && maps.Equal(o.lengths, x.lengths)
}

// collectInteractions collects the interactions of all threads, except undone ones.
func (b *pass) collectInteractions() interactions {
	all := newInteractions()
	all.descriptors = b.descriptors
	for _, w := range b.threads {
		for i := range w.sentPieces {
			all.flows.Add(&w.sentPieces[i])
		}
		for _, s := range w.raisedSignals {
			all.signals[s] = true
		}
		for _, l := range w.fileLengths {
			all.lengths[l.file] = max(all.lengths[l.file], l.to)
		}
	}
	return all
}

// fileLength is how long a file is made.
type fileLength struct{ file, to uint64 }
