package search

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Conditions that are assumed are not implied by a thread's path. A read that breaks one, and
// nothing else, may be the begin of an execution that is not in the trace. Any such execution has a
// first read of this kind, and everything before it is in the trace: so the search, which examines
// all that can come before, finds it.

// meetsAssumptions reports whether a value that was read is as assumed; it notes the value if not.
func (x *searcher) meetsAssumptions(s *state, id model.ID) bool {
	for _, test := range x.assumed[id] {
		if !x.isDecided(s, test) || x.evaluateExpr(s, test).Lo != 0 {
			continue
		}
		o := Alternative{}
		if test.Op == symbolic.Eq && (test.A.Op == symbolic.Symbol || test.B.Op == symbolic.Symbol) {
			o = Alternative{Symbol: x.Events[id].Symbol.Name, Value: s.values[id]}
		}
		x.noteAlternative(s, o)
		return false
	}
	return true
}

// noteAlternative keeps the furthest of several that are the same.
func (x *searcher) noteAlternative(s *state, o Alternative) {
	n := 0
	if s.steps != nil {
		n = s.steps.count
	}
	x.alternatives[o] = max(x.alternatives[o], n)
}

// noteEarlyFailure notes that a local event of a thread leads nowhere, while an assumption is
// pending about a later event of another thread: without the assumption the event may read another
// value.
func (x *searcher) noteEarlyFailure(s *state, thread int) {
	for t, at := range s.nextEvents {
		if t != thread && at < x.pending[t] {
			x.noteAlternative(s, Alternative{})
			return
		}
	}
}

// foundAlternatives lists the noted alternatives. A condition that never holds may be unsatisfiable
// because of an assumption.
func (x *searcher) foundAlternatives() []Alternative {
	if x.impossible && slices.ContainsFunc(x.pending, func(n int32) bool { return n > 0 }) {
		return []Alternative{{}}
	}
	var all []Alternative
	for o, n := range x.alternatives {
		o.steps = n
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Alternative) int {
		return cmp.Or(cmp.Compare(b.steps, a.steps), cmp.Compare(a.Symbol, b.Symbol), cmp.Compare(a.Value.Lo, b.Value.Lo), cmp.Compare(a.Value.Hi, b.Value.Hi))
	})
	return all
}
