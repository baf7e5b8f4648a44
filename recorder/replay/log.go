package replay

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Log reads the decisions of a trace: sched.Decisions. It keeps one chunk of
// them.
type Log struct {
	parts []trace.ChunkRecords
	at    int // the part that is in have, or -1
	have  []event.Decision
	err   error
}

// NewLog reads the decisions of a trace, which must stay open.
func NewLog(r *trace.Reader) *Log {
	return &Log{parts: slices.Collect(r.Parts(trace.Key{Kind: trace.Decisions}, trace.Where{})), at: -1}
}

// SharedInSnapshot marks that copies of a machine's state share the log.
func (l *Log) SharedInSnapshot() {}

// Err is the damage that ended the log too early, nil for none.
func (l *Log) Err() error { return l.err }

// Decision implements sched.Decisions.
func (l *Log) Decision(n uint64) (event.Decision, bool) {
	i, found := slices.BinarySearchFunc(l.parts, n, func(p trace.ChunkRecords, n uint64) int {
		return cmp.Compare(p.Chunk.First, n)
	})
	if !found {
		i--
	}
	if i < 0 || !l.loadPart(i) {
		return event.Decision{}, false
	}
	n -= l.parts[i].Chunk.First
	if n >= uint64(len(l.have)) {
		return event.Decision{}, false
	}
	return l.have[n], true
}

// loadPart reads a part.
func (l *Log) loadPart(i int) bool {
	if i == l.at {
		return true
	}
	l.at, l.have = -1, l.have[:0]
	for record, err := range l.parts[i].Records() {
		var d event.Decision
		if err == nil {
			d, err = trace.Decode[event.Decision](record)
		}
		if err != nil {
			l.err = err
			return false
		}
		l.have = append(l.have, d)
	}
	l.at = i
	return true
}
