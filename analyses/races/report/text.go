package report

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Text writes the report for people: a paragraph for each race, in the form that
// other race detectors use, the threads that take part, and a summary.
func (r *Report) Text(out io.Writer) error {
	w := &printer{Writer: bufio.NewWriter(out), r: r}
	for i := range r.Locations {
		w.location(&r.Locations[i])
	}
	w.threads()
	w.summary()
	return w.Flush()
}

// printer writes text.
type printer struct {
	*bufio.Writer
	r        *Report
	involved []int // threads
}

func (w *printer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// location writes a heading, and the races below it.
func (w *printer) location(l *Location) {
	w.line("%s: %s, %s", l.Name, number(uint64(len(l.Races)), "race"), number(l.Instances, "instance"))
	for _, i := range l.Races {
		w.race(i+1, w.r.Races[i])
	}
}

func (w *printer) race(n int, race *Race) {
	marked := ""
	if race.Marked > 0 {
		marked = fmt.Sprintf(", %d of them benign", race.Marked)
	}
	predicted := ""
	if race.Witness != nil {
		predicted = "predicted, in the run of its witness "
	}
	w.line("race %d, %s%s (%s)%s:", n, predicted, times(race.Count), kinds(race.Kinds), marked)
	w.access("", &race.Second)
	w.access("after ", &race.First)
	w.place(&race.At)
	if race.Witness != nil && race.Witness.Command != "" {
		w.line("  to see it: %s", race.Witness.Command)
	}
	w.line("")
}

// times is how often something happened.
func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// kinds lists the kinds of races, with their numbers if there are several.
func kinds(count map[string]uint64) string {
	names := make([]string, 0, len(count))
	for k := range count {
		names = append(names, k)
	}
	slices.Sort(names)
	if len(names) == 1 {
		return names[0]
	}
	for i, k := range names {
		names[i] = fmt.Sprintf("%d %s", count[k], k)
	}
	return strings.Join(names, ", ")
}

func (w *printer) access(which string, a *Access) {
	kind := "read"
	if a.Write {
		kind = "write"
	}
	if a.Atomic {
		kind = "atomic access"
	}
	if a.Size > 0 {
		kind += " of " + number(uint64(a.Size), "byte")
	}
	switch a.By {
	case "kernel":
		kind += " by the kernel"
	case "free":
		kind = "free"
	case "operation":
		kind = "synchronization operation"
	}
	w.line("  %s%s in %s", which, kind, w.thread(a.Thread))
	w.stack(a.Stack)
}

// thread names a thread, which the report then describes.
func (w *printer) thread(n int) string {
	if !slices.Contains(w.involved, n) {
		w.involved = append(w.involved, n)
	}
	return fmt.Sprintf("thread %d", n)
}

func (w *printer) stack(frames []Frame) {
	for i := range frames {
		w.line("    #%d %s", i, frames[i].String())
	}
}

// String is a frame as text: function, source line, and place in the file.
func (f *Frame) String() string {
	var parts []string
	if f.Function != "" {
		parts = append(parts, f.Function)
	}
	if f.File != "" {
		parts = append(parts, fmt.Sprintf("%s:%d", f.File, f.Line))
	}
	switch {
	case f.Image != "":
		parts = append(parts, fmt.Sprintf("(%s+%#x)", path.Base(f.Image), f.ImageAddr))
	default:
		parts = append(parts, fmt.Sprintf("(%#x)", uint64(f.PC)))
	}
	return strings.Join(parts, " ")
}

func (w *printer) place(p *Place) {
	at := fmt.Sprintf("  address %#x: ", uint64(p.Addr))
	switch p.Kind {
	case "variable":
		name := p.Name
		if p.Offset > 0 {
			name += fmt.Sprintf("+%d", p.Offset)
		}
		w.line("%svariable %s of %s", at, name, path.Base(p.Image))
	case "block":
		w.line("%sbyte %d of a block of %s, allocated by %s", at, p.Offset, number(p.Size, "byte"), w.thread(p.Made.Thread))
		w.stack(p.Made.Stack)
		if p.Freed != nil {
			w.line("  and freed by %s", w.thread(p.Freed.Thread))
			w.stack(p.Freed.Stack)
		}
	case "stack":
		w.line("%sstack of %s", at, w.thread(p.Thread))
	default:
		w.line("%smemory of no known name", at)
	}
}

// threads describes those that take part, and who made them.
func (w *printer) threads() {
	for i := 0; i < len(w.involved); i++ {
		t := &w.r.Threads[w.involved[i]]
		if t.Parent < 0 {
			w.line("thread %d is %s, id %d, the first of the run", t.Number, t.Name, t.ID)
			continue
		}
		w.line("thread %d is %s, id %d, made by %s", t.Number, t.Name, t.ID, w.thread(t.Parent))
		w.stack(t.Created)
	}
	if len(w.involved) > 0 {
		w.line("")
	}
}

func (w *printer) summary() {
	r := w.r
	order := "the program's synchronization"
	if r.Mode == "schedule" {
		order = "the recorded order of synchronization operations"
	}
	switch r.Words {
	case OrderWords:
		order += " and atomic words"
	case CodeWords:
		order += " and the atomic words of C++ code and of OpenMP's and oneTBB's libraries"
	}
	w.line("%s, %s, relative to %s",
		number(uint64(r.Static), "race"), number(r.Dynamic, "instance"), order)
	if n := r.Static - len(r.Races) + r.Confirmed(); n > 0 {
		w.line("not described: %d, by --limit", n)
	}
	if r.Benign == Mark && r.Marked > 0 {
		w.line("benign instances, whose write changes nothing: %d", r.Marked)
	}
	if r.Pruned > 0 {
		w.line("left out: %s whose write changes nothing (--benign mark shows them)", number(r.Pruned, "instance"))
	}
	if r.Library > 0 {
		w.line("left out: %s within run-time libraries, of %s of instructions (--library shows them)",
			number(r.Library, "instance"), number(uint64(r.LibraryPairs), "pair"))
	}
	if r.Unselected > 0 {
		w.line("left out: %s at other addresses or instructions", number(r.Unselected, "instance"))
	}
	if r.Outside > 0 {
		w.line("left out: %s outside of the region of interest", number(r.Outside, "instance"))
	}
	w.suppressed()
	w.prediction()
	w.line("%s by %s, %s", number(r.Counts.Accesses, "access"), number(uint64(r.Counts.Threads), "thread"),
		number(r.Counts.Syncs, "synchronization event"))
	for _, note := range r.Notes {
		w.line("note: %s", note)
	}
	switch {
	case r.Another != "" && r.Prediction != nil:
		w.line("only orders of this run's events were examined; another run: %s", r.Another)
	case r.Another != "":
		w.line("only the interleaving of this run was examined; another one: %s", r.Another)
	}
}

// suppressed counts the races that rules left out.
func (w *printer) suppressed() {
	used := 0
	for _, rule := range w.r.Rules {
		if rule.Races > 0 {
			used++
		}
	}
	if used > 0 {
		w.line("suppressed: %s, %s, by %s", number(uint64(w.r.Suppressed), "race"),
			number(w.r.SuppressedInstances, "instance"), number(uint64(used), "rule"))
	}
	for _, rule := range w.r.Rules {
		switch {
		case !w.r.verbose:
		case rule.Races > 0:
			w.line("  %s:%d: %s: %s, %s", rule.File, rule.Line, rule.Text, number(uint64(rule.Races), "race"), number(rule.Instances, "instance"))
		default:
			w.line("  %s:%d: %s: matches no race", rule.File, rule.Line, rule.Text)
		}
	}
}

// number is a count of things.
func number(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
