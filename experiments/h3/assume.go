package h3

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errChosen = errs.Define("reproduce-values-chosen",
	"no schedule was found with the values that were tried for {count} addresses, and others are possible; record another failing run, or allow more time with --timeout",
	"Where an address depends on a value that a thread reads, and the thread follows its path under several such values, they are tried one after the other. The time limit or the limit of attempts was reached, or the other values are not known; a search by execution has found none either. There may be a schedule.",
	"Record another failing run, with fewer threads or less input if the program allows it; give it more time with --timeout if the limit of time was reached.")

// Limits under which an answer holds.
const (
	LimitChosen  = "chosen"
	LimitSharing = "sharing"
)

// maxOtherAttempts is how many other values are tried at most.
const maxOtherAttempts = 64

// traceOptions is how threads are followed.
type traceOptions struct {
	// faulting is the number of the thread that is taken for the one that crashed, among those that
	// can fault: the recording does not name it.
	faulting int
	// plain has no values guessed that one thread writes once.
	plain bool
	// prefer are values for symbols that need one.
	prefer map[string]preferredValue
	// known are the facts of another attempt.
	known *symtrace.Facts
}

// preferredValue is a value that is tried, and where it is read.
type preferredValue struct {
	value symbolic.Value
	place readPlace
}

// countAssumptions counts the conditions of a trace that no path implies.
func (out *Outcome) countAssumptions() int { return out.Trace.Assumed + out.Trace.OtherOutcomes }

// tryAssumptions looks for a schedule. If the chosen values have none, it tries the other
// values that can be read, those that are read latest first. "No schedule" is the answer only if
// every execution that reads another value was examined.
func (r *Recording) tryAssumptions(l *limiter, out *Outcome, o *Options, first traceOptions) error {
	out.OtherAttempts = 0
	if err := r.attemptOnce(l, out, o, first); err != nil || out.Answer != smt.Unsatisfiable || out.countAssumptions() == 0 {
		return err
	}
	if err := r.searchByExecution(l, out, o, fewMoves); err != nil || out.Executed != nil {
		return err
	}
	tried := map[string]bool{}
	pending, proved := first.otherOptions(out, tried)
	for len(pending) > 0 && out.OtherAttempts < maxOtherAttempts && !l.isReached() {
		out.OtherAttempts++
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if err := r.attemptOnce(l, out, o, next); err != nil {
			proved = false // there is no trace with these values
			continue
		}
		if out.Answer != smt.Unsatisfiable {
			return nil
		}
		more, all := next.otherOptions(out, tried)
		pending, proved = append(pending, more...), proved && all
	}
	if !proved || len(pending) > 0 {
		out.Answer, out.Limit = smt.Unknown, LimitChosen
	}
	return nil
}

// otherOptions are options with another value each, the one that is read latest last. If all is
// false, there are other values that cannot be tried.
func (w traceOptions) otherOptions(out *Outcome, tried map[string]bool) (more []traceOptions, all bool) {
	if out.countAssumptions() == 0 {
		return nil, true
	}
	w.known = out.Trace.Facts
	all = out.Trace.OtherOutcomes == 0 && (out.Trace.Faults == 0 || len(out.alternatives) == 0) && w.keepsValues(out.Trace.Trace)
	for _, other := range out.alternatives {
		if _, again := w.prefer[other.Symbol]; again {
			continue // other values of this read are tried in another attempt
		}
		if other.Symbol == "" {
			all = false
			continue
		}
		if next := w.withValue(other.Symbol, preferredValue{other.Value, placeOfSymbol(out.Trace.Trace, other.Symbol)}); !tried[next.optionsKey()] {
			tried[next.optionsKey()] = true
			more = append(more, next)
		}
	}
	slices.Reverse(more)
	return more, all
}

// withValue is a way with one more value.
func (w traceOptions) withValue(symbol string, v preferredValue) traceOptions {
	w.prefer = maps.Clone(w.prefer)
	if w.prefer == nil {
		w.prefer = map[string]preferredValue{}
	}
	w.prefer[symbol] = v
	return w
}

// preferredValues are the preferred values, by symbol.
func (w traceOptions) preferredValues() map[string]symbolic.Value {
	all := map[string]symbolic.Value{}
	for name, v := range w.prefer {
		all[name] = v.value
	}
	return all
}

// keepsValues reports whether a trace has the preferred values, in the same reads.
func (w traceOptions) keepsValues(t *model.Trace) bool {
	for name, v := range w.prefer {
		has := func(c model.Condition) bool {
			s := t.Pool.Symbol(name, 8*v.place.size)
			return c.Assumed && c.Expr == t.Pool.Eq(s, t.Pool.Const(v.value, s.Bits))
		}
		if placeOfSymbol(t, name) != v.place || !slices.ContainsFunc(t.Path, has) && !slices.ContainsFunc(t.Bug, has) {
			return false
		}
	}
	return true
}

// readPlace is the place of a read: which instruction of its core, and of which memory.
type readPlace struct {
	thread int
	core   arch.CoreID
	at     uint64
	addr   uint64
	size   int
}

// placeOfSymbol finds the event with a symbol.
func placeOfSymbol(t *model.Trace, symbol string) readPlace {
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind.Reads() && e.Symbol.Name == symbol {
			return readPlace{e.Thread, e.Core, e.CoreInstructions, e.Addr, e.Size}
		}
	}
	return readPlace{}
}

// optionsKey distinguishes options.
func (w traceOptions) optionsKey() string {
	var k string
	for _, name := range slices.Sorted(maps.Keys(w.prefer)) {
		k += fmt.Sprintf("%s=%x:%x ", name, w.prefer[name].value.Hi, w.prefer[name].value.Lo)
	}
	return k
}

// Undecided is the error of an outcome without an answer because of an assumption; nil: there is
// another reason.
func (out *Outcome) Undecided() error {
	if out.Limit != LimitChosen {
		return nil
	}
	return errChosen.New(out.countAssumptions())
}
