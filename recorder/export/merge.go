package export

import (
	"iter"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// source is one stream of events as the merger takes them.
type source struct {
	next func() (any, event.Stamp, error, bool)
	stop func()

	event any
	at    event.Stamp
	err   error
	more  bool
}

func (s *source) advance() { s.event, s.at, s.err, s.more = s.next() }

// openSource opens the stream of a kind.
func openSource[E trace.Event](r *trace.Reader, kind trace.Kind, stamp func(*E) event.Stamp) *source {
	next, stop := iter.Pull2(trace.Get[E](r, trace.Key{Kind: kind}, trace.Where{}))
	s := &source{stop: stop, next: func() (any, event.Stamp, error, bool) {
		e, err, more := next()
		return &e, stamp(&e), err, more
	}}
	s.advance()
	return s
}

// mergeThreads iterates over the events of threads in the order in which they
// happened: *event.Start, Exit, Syscall, Signal, Sync. Damage gives an error and
// is passed over.
func mergeThreads(r *trace.Reader) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		sources := []*source{
			openSource(r, trace.Threads, func(e *event.Start) event.Stamp { return e.Stamp }),
			openSource(r, trace.Exits, func(e *event.Exit) event.Stamp { return e.Stamp }),
			openSource(r, trace.Syscalls, func(e *event.Syscall) event.Stamp { return e.Stamp }),
			openSource(r, trace.Signals, func(e *event.Signal) event.Stamp { return e.Stamp }),
			openSource(r, trace.Sync, func(e *event.Sync) event.Stamp { return e.Stamp }),
		}
		defer func() {
			for _, s := range sources {
				s.stop()
			}
		}()
		for s := earliestSource(sources); s != nil; s = earliestSource(sources) {
			if !yield(s.event, s.err) {
				return
			}
			s.advance()
		}
	}
}

// earliestSource is the source whose event is the earliest, nil if all are at their end.
func earliestSource(sources []*source) (found *source) {
	for _, s := range sources {
		if s.more && (found == nil || s.err != nil || s.at.Seq < found.at.Seq) {
			found = s
			if s.err != nil {
				break
			}
		}
	}
	return found
}
