package reproduce

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var errChosen = errs.Define("reproduce-values-chosen",
	"no schedule found: values were chosen for {count} addresses, and not all others were tried",
	"Where a thread goes along its path under several values of what it reads, and an address depends on that, one is taken after the other; the time or the number of attempts was over, or it is not known which other ones there are. There may be a schedule.",
	"Give it more time with --timeout, or record another failing run.")

// Limits of what an answer is true for.
const (
	LimitChosen  = "chosen"
	LimitSharing = "sharing"
)

// maxOthers is how many other values are tried at most.
const maxOthers = 64

// way is how threads are followed.
type way struct {
	// faulting is the number of the thread that is taken for that which crashed, of
	// those that can fault: it is not recorded whose the crash was.
	faulting int
	// plain has no values guessed that one thread writes once.
	plain bool
	// prefer are values for symbols that need one.
	prefer map[string]wanted
	// known is what another way has found out.
	known *symtrace.Known
}

// wanted is a value that is tried, and where it is read.
type wanted struct {
	value symbolic.Value
	at    place
}

// assumptions is how much of a trace no path tells.
func (out *Outcome) assumptions() int { return out.Trace.Assumed + out.Trace.Outcomes }

// assuming looks for a schedule. If there is none for the values that were chosen, it
// tries those that can be read instead, those that are read latest first. That there is
// none is the answer only if every execution that reads something else was looked at.
func (r *Recording) assuming(l *limiter, out *Outcome, o *Options, first way) error {
	out.Others = 0
	if err := r.attempt(l, out, o, first); err != nil || out.Answer != smt.Unsatisfiable || out.assumptions() == 0 {
		return err
	}
	tried := map[string]bool{}
	pending, proved := first.others(out, tried)
	for len(pending) > 0 && out.Others < maxOthers && !l.stop() {
		out.Others++
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if err := r.attempt(l, out, o, next); err != nil {
			proved = false // there is no trace with these values
			continue
		}
		if out.Answer != smt.Unsatisfiable {
			return nil
		}
		more, all := next.others(out, tried)
		pending, proved = append(pending, more...), proved && all
	}
	if !proved || len(pending) > 0 {
		out.Answer, out.Limit = smt.Unknown, LimitChosen
	}
	return nil
}

// others are ways with another value each, that which is read latest last. Not all
// tells that there are others of which it is not known how to try them.
func (w way) others(out *Outcome, tried map[string]bool) (more []way, all bool) {
	if out.assumptions() == 0 {
		return nil, true
	}
	w.known = out.Trace.Known
	all = out.Trace.Outcomes == 0 && (out.Trace.Faults == 0 || len(out.open) == 0) && w.kept(out.Trace.Trace)
	for _, other := range out.open {
		if _, again := w.prefer[other.Symbol]; again {
			continue // what reads this there is looked at in another way
		}
		if other.Symbol == "" {
			all = false
			continue
		}
		if next := w.with(other.Symbol, wanted{other.Value, read(out.Trace.Trace, other.Symbol)}); !tried[next.key()] {
			tried[next.key()] = true
			more = append(more, next)
		}
	}
	slices.Reverse(more)
	return more, all
}

// with is a way with one more value.
func (w way) with(symbol string, v wanted) way {
	w.prefer = maps.Clone(w.prefer)
	if w.prefer == nil {
		w.prefer = map[string]wanted{}
	}
	w.prefer[symbol] = v
	return w
}

// values are those that are preferred.
func (w way) values() map[string]symbolic.Value {
	all := map[string]symbolic.Value{}
	for name, v := range w.prefer {
		all[name] = v.value
	}
	return all
}

// kept tells that a trace has the values that were wanted, in the same reads.
func (w way) kept(t *model.Trace) bool {
	for name, v := range w.prefer {
		has := func(c model.Condition) bool {
			s := t.Pool.Symbol(name, 8*v.at.size)
			return c.Assumed && c.Expr == t.Pool.Eq(s, t.Pool.Const(v.value, s.Bits))
		}
		if read(t, name) != v.at || !slices.ContainsFunc(t.Path, has) && !slices.ContainsFunc(t.Bug, has) {
			return false
		}
	}
	return true
}

// place is where a thread reads: which instruction of its core, and what.
type place struct {
	thread int
	core   event.CoreID
	at     uint64
	addr   uint64
	size   int
}

// read finds the event with a symbol.
func read(t *model.Trace, symbol string) place {
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind.Reads() && e.Symbol.Name == symbol {
			return place{e.Thread, e.Core, e.Place, e.Addr, e.Size}
		}
	}
	return place{}
}

// key tells ways apart.
func (w way) key() string {
	var k string
	for _, name := range slices.Sorted(maps.Keys(w.prefer)) {
		k += fmt.Sprintf("%s=%x:%x ", name, w.prefer[name].value.Hi, w.prefer[name].value.Lo)
	}
	return k
}

// Undecided is the error of an outcome without an answer because of what was assumed;
// nil: that is not why.
func (out *Outcome) Undecided() error {
	if out.Limit != LimitChosen {
		return nil
	}
	return errChosen.New(out.assumptions())
}
