package replay

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// records reads the events of one stream of a trace, by their numbers from 0. It keeps one chunk
// of them.
type records[T trace.Event] struct {
	parts []trace.ChunkRecords
	at    int // the part that is in have, or -1
	have  []T
	err   error
}

func newRecords[T trace.Event](r *trace.Reader, kind trace.Kind) records[T] {
	return records[T]{parts: slices.Collect(r.Parts(trace.Key{Kind: kind}, trace.Where{})), at: -1}
}

// SharedInSnapshot marks that copies of a machine's state share the log.
func (l *records[T]) SharedInSnapshot() {}

// Err is the damage that ended the log too early, nil for none.
func (l *records[T]) Err() error { return l.err }

// find returns record n, or false if the log has fewer.
func (l *records[T]) find(n uint64) (record T, found bool) {
	i, found := slices.BinarySearchFunc(l.parts, n, func(p trace.ChunkRecords, n uint64) int {
		return cmp.Compare(p.Chunk.First, n)
	})
	if !found {
		i--
	}
	if i < 0 || !l.loadPart(i) {
		return record, false
	}
	n -= l.parts[i].Chunk.First
	if n >= uint64(len(l.have)) {
		return record, false
	}
	return l.have[n], true
}

// loadPart reads a part.
func (l *records[T]) loadPart(i int) bool {
	if i == l.at {
		return true
	}
	l.at, l.have = -1, l.have[:0]
	for record, err := range l.parts[i].Records() {
		var e T
		if err == nil {
			e, err = trace.Decode[T](record)
		}
		if err != nil {
			l.err = err
			return false
		}
		l.have = append(l.have, e)
	}
	l.at = i
	return true
}

// Log reads the decisions of a trace: sched.Decisions.
type Log struct{ records[event.Decision] }

// NewLog reads the decisions of a trace, which must stay open.
func NewLog(r *trace.Reader) *Log { return &Log{newRecords[event.Decision](r, trace.Decisions)} }

// Decision implements sched.Decisions.
func (l *Log) Decision(n uint64) (event.Decision, bool) { return l.find(n) }

// ClientLog reads what clients outside of the guest did in a recorded run.
type ClientLog struct{ records[event.Client] }

// NewClientLog reads the operations of the clients in a trace, which must stay open.
func NewClientLog(r *trace.Reader) *ClientLog {
	return &ClientLog{newRecords[event.Client](r, trace.Clients)}
}

// Operation returns operation n, from 0, or false if the log has fewer.
func (l *ClientLog) Operation(n uint64) (event.Client, bool) { return l.find(n) }
