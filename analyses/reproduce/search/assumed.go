package search

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Conditions that are assumed are no part of what a thread's path tells. A read that
// breaks one, and nothing else, may be the begin of an execution that is not in the
// trace. Any such execution has a first one of these, and what is before it is in the
// trace: so the search, which looks at all that can come before, finds it.

// asAssumed tells that a value that was read is as assumed, and notes it if not.
func (x *searcher) asAssumed(s *state, id model.ID) bool {
	for _, test := range x.assumed[id] {
		if !x.decided(s, test) || x.evaluate(s, test).Lo != 0 {
			continue
		}
		o := Other{}
		if test.Op == symbolic.Eq && (test.A.Op == symbolic.Symbol || test.B.Op == symbolic.Symbol) {
			o = Other{Symbol: x.Events[id].Symbol.Name, Value: s.values[id]}
		}
		x.note(s, o)
		return false
	}
	return true
}

// note keeps the furthest of several that are the same.
func (x *searcher) note(s *state, o Other) {
	n := 0
	if s.steps != nil {
		n = s.steps.n
	}
	x.others[o] = max(x.others[o], n)
}

// early notes that a thread's event that is not interleaved leads nowhere, while
// something is assumed of what comes later in another: without that the event may read
// something else.
func (x *searcher) early(s *state, thread int) {
	for t, at := range s.at {
		if t != thread && at < x.pending[t] {
			x.note(s, Other{})
			return
		}
	}
}

// found lists what was noted. A condition that never holds may be one because of what
// is assumed.
func (x *searcher) found() []Other {
	if x.impossible && slices.ContainsFunc(x.pending, func(n int32) bool { return n > 0 }) {
		return []Other{{}}
	}
	var all []Other
	for o, n := range x.others {
		o.at = n
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Other) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.Symbol, b.Symbol), cmp.Compare(a.Value.Lo, b.Value.Lo), cmp.Compare(a.Value.Hi, b.Value.Hi))
	})
	return all
}
