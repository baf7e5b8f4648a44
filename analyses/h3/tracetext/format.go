package tracetext

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Format writes a trace as text. Variables have the names that nameOf gives; without one, or if it
// is nil, their addresses. Objects are o1, o2 and so on in the order in which they occur, and
// values have the names of their symbols. The text does not have cores, addresses of instructions,
// and which conditions are assumed.
func Format(t *model.Trace, nameOf func(addr uint64) string) string {
	w := &formatter{trace: t, nameOf: nameOf, objects: map[event.ObjectID]string{}, read: map[string]bool{}, written: map[*model.Condition]bool{}}
	w.writeInitialState()
	w.announceThreads()
	rest := make([]int, len(t.Threads)) // events that are not written yet
	for i := range t.Threads {
		rest[i] = len(t.Threads[i].Events)
	}
	for i := range t.Events {
		e := &t.Events[i]
		w.enterThread(e.Thread)
		w.line("  %s", w.formatEvent(e))
		if e.Kind.Reads() {
			w.read[e.Symbol.Name] = true
		}
		if rest[e.Thread]--; rest[e.Thread] == 0 {
			w.writeConditions(e.Thread, false)
		}
	}
	for i := range t.Threads {
		if len(t.Threads[i].Events) == 0 {
			w.enterThread(i)
		}
		w.writeConditions(i, true)
	}
	w.writeConditions(-1, true)
	return w.String()
}

// formatter writes a trace.
type formatter struct {
	strings.Builder
	trace   *model.Trace
	nameOf  func(addr uint64) string
	objects map[event.ObjectID]string
	// read are the symbols whose events are written, and written the conditions that are.
	read    map[string]bool
	written map[*model.Condition]bool
	now     int // the number of the thread whose lines are written, from 1; 0: none
}

func (w *formatter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// announceThreads writes the names of all threads, if they are not in the order in which their
// lines come.
func (w *formatter) announceThreads() {
	last, ordered := 0, true
	seen := make([]bool, len(w.trace.Threads))
	for i := range w.trace.Events {
		if n := w.trace.Events[i].Thread; !seen[n] {
			seen[n], ordered, last = true, ordered && n == last, last+1
		}
	}
	if ordered {
		return
	}
	for i := range w.trace.Threads {
		w.line("thread %s", w.trace.Threads[i].Name)
	}
}

// enterThread begins the lines of a thread, or with -1 those of none, unless they continue.
func (w *formatter) enterThread(thread int) {
	switch {
	case w.now == thread+1:
		return
	case thread < 0:
		w.line("thread")
	default:
		w.line("thread %s", w.trace.Threads[thread].Name)
	}
	w.now = thread + 1
}

// writeInitialState writes what is so before the first event.
func (w *formatter) writeInitialState() {
	t := w.trace
	if t.Deadlocked {
		w.line("deadlock")
	}
	for i := range t.Arrays {
		a := &t.Arrays[i]
		w.line("array %s %d %d", w.variable(a.Addr), a.Elem, a.Count)
	}
	words := map[uint64]uint64{} // values of aligned variables, by address
	for addr, b := range t.Initial {
		words[addr/Size*Size] |= uint64(b) << (8 * (addr % Size))
	}
	for _, addr := range slices.Sorted(maps.Keys(words)) {
		w.line("init %s=%d", w.variable(addr), words[addr])
	}
	for i := range t.Events {
		if o := t.Events[i].Object; o != 0 && w.objects[o] == "" && t.Semaphores[o] != 0 {
			w.line("semaphore %s %d", w.object(o), t.Semaphores[o])
		}
	}
}

func (w *formatter) variable(addr uint64) string {
	if w.nameOf != nil {
		if name := w.nameOf(addr); name != "" {
			return name
		}
	}
	return fmt.Sprintf("%#x", addr)
}

func (w *formatter) object(id event.ObjectID) string {
	if w.objects[id] == "" {
		w.objects[id] = fmt.Sprintf("o%d", len(w.objects)+1)
	}
	return w.objects[id]
}

// wordOf is the word of a kind of events.
func wordOf(kind model.Kind) string { return strings.ReplaceAll(kind.String(), " ", "") }

func (w *formatter) formatEvent(e *model.Event) string {
	text := wordOf(e.Kind)
	if e.Kind.Reads() {
		text = e.Symbol.Name + " = " + text
	}
	switch {
	case e.Kind.Reads() || e.Kind.Writes():
		text += " " + w.formatPlace(e)
		if e.Kind.Writes() {
			text += " " + formatValue(e.Value)
		}
	case e.Kind == model.Fork || e.Kind == model.Join:
		text += " " + w.trace.Threads[e.Peer].Name
	case e.Kind == model.Arrive:
		text += fmt.Sprintf(" %s %d", w.object(e.Object), e.Count)
	default:
		if _, without := operandCounts[e.Kind]; !without {
			text += " " + w.object(e.Object)
		}
	}
	if e.Shared || e.TimedOut {
		text += " " + marks[e.Kind]
	}
	return text
}

func (w *formatter) formatPlace(e *model.Event) string {
	place := w.variable(e.Addr)
	switch i := e.Index; {
	case i == nil && e.Size == Size:
		return place
	case i == nil:
		return fmt.Sprintf("%s:%d", place, e.Size)
	case i.Op == symbolic.ZeroExt && i.A.Op == symbolic.Symbol:
		return place + "[" + i.A.Name + "]"
	default:
		return place + "[" + formatValue(i) + "]"
	}
}

// formatSum writes a sum of numbers and symbols; false if a value is none.
func formatSum(e *symbolic.Expr) (string, bool) {
	switch {
	case e.Op == symbolic.Symbol:
		return e.Name, true
	case e.Op == symbolic.Const && e.Bits <= 64:
		return formatNumber(e.Value.Lo), true
	case e.Op != symbolic.Add:
		return "", false
	}
	a, ok := formatSum(e.A)
	b, also := formatSum(e.B)
	return a + "+" + b, ok && also
}

// formatNumber writes a number in decimal if it is small.
func formatNumber(n uint64) string {
	const small = 1 << 20
	if n < small {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%#x", n)
}

func formatValue(e *symbolic.Expr) string {
	if text, ok := formatSum(e); ok {
		return text
	}
	return fmt.Sprintf("%q", e.String())
}

// writeConditions writes the conditions of a thread, or with -1 of none; those with a symbol whose
// event is not written yet only if all are to be written.
func (w *formatter) writeConditions(thread int, all bool) {
	for _, part := range []struct {
		word string
		list []model.Condition
	}{{"path", w.trace.Path}, {"bug", w.trace.Bug}} {
		for i := range part.list {
			if c := &part.list[i]; c.Thread == thread && !w.written[c] && (all || w.hasSymbols(c.Expr)) {
				w.written[c] = true
				w.enterThread(thread)
				w.line("  %s %s", part.word, formatCondition(c.Expr))
			}
		}
	}
}

// hasSymbols reports whether the events of all symbols of an expression are written.
func (w *formatter) hasSymbols(e *symbolic.Expr) bool {
	has := true
	symbolic.Symbols(e, func(s *symbolic.Expr) { has = has && w.read[s.Name] })
	return has
}

// signs are the comparisons of conditions.
var signs = map[symbolic.Op]string{
	symbolic.Eq: "==", symbolic.SLT: "<", symbolic.SLE: "<=", symbolic.ULT: "<u", symbolic.ULE: "<=u",
}

func formatCondition(e *symbolic.Expr) string {
	if e.Op == symbolic.Const {
		return fmt.Sprintf("%d == 1", e.Value.Lo)
	}
	c, sign := e, signs[e.Op]
	if e.Op == symbolic.Not && e.A.Op == symbolic.Eq {
		c, sign = e.A, "!="
	}
	if sign != "" {
		a, ok := formatSum(c.A)
		b, also := formatSum(c.B)
		if ok && also {
			return a + " " + sign + " " + b
		}
	}
	return fmt.Sprintf("%q", e.String())
}
