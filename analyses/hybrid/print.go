package hybrid

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// WriteSummary writes the kind and the size of a schedule, and how much of it was pruned, for a reader.
func (f *File) WriteSummary(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "kind\t%s\nprogram\t%s\nseed\t%d\ncores\t%d\n", f.Kind, strings.Join(f.Args, " "), f.Seed, f.Cores)
	fmt.Fprintf(w, "threads\t%d\noperations\t%d\n", len(f.Schedule.Threads), len(f.Schedule.Operations))
	fmt.Fprintf(w, "constraints\t%d\n", len(f.Schedule.Constraints))
	if f.Kind != "sync" {
		fmt.Fprintf(w, "races\t%d\nunpruned\t%d\nby subsumption\t%d\nby reduction\t%d\n",
			f.Counts.Races, f.Counts.Unpruned, f.Counts.Subsumed, f.Counts.Reduced)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for n, count := range f.signalsInWaits() {
		if count == 0 {
			continue
		}
		_, err := fmt.Fprintf(to, "thread %s gets %d signals in waits on conditions: state_digest may differ between runs under the schedule, and a run with long delays may not end\n",
			f.Schedule.Threads[n], count)
		if err != nil {
			return err
		}
	}
	return f.writeSpinLoops(to)
}

// signalsInWaits counts, by thread, the signals that have interrupted a wait on a condition: what the thread does in the wait from
// there on has no position.
func (f *File) signalsInWaits() []int {
	counts := make([]int, len(f.Schedule.Threads))
	waits := make([]bool, len(f.Schedule.Threads))
	for i := range f.Schedule.Operations {
		switch o := &f.Schedule.Operations[i]; {
		case o.Part != event.SignalPart:
			waits[o.Thread] = o.Part == event.BeginPart && isOnCondition(o.Op)
		case waits[o.Thread] && o.Result == event.Interrupted:
			counts[o.Thread]++
		}
	}
	return counts
}

// mostSpinLoops bounds the loops that a summary has.
const mostSpinLoops = 20

// writeSpinLoops writes the loops in which threads waited for each other, those with the most iterations first.
func (f *File) writeSpinLoops(to io.Writer) error {
	list := slices.Clone(f.SpinLoops)
	slices.SortStableFunc(list, func(a, b SpinLoop) int { return cmp.Compare(b.Iterations, a.Iterations) })
	for _, l := range list[:min(mostSpinLoops, len(list))] {
		where := l.Note
		if where == "" {
			where = fmt.Sprintf("%#x waits for %#x", uint64(l.PC), uint64(l.Writers[0]))
		}
		if _, err := fmt.Fprintf(to, "spin loop: %s, %d times, %d iterations\n", where, l.Waits, l.Iterations); err != nil {
			return err
		}
	}
	if more := len(list) - mostSpinLoops; more > 0 {
		_, err := fmt.Fprintf(to, "and %d spin loops more\n", more)
		return err
	}
	return nil
}

// WriteLines writes operations and constraints for a reader, one a line and of each at most a number, and then how many
// it has left out.
func (f *File) WriteLines(to io.Writer, most int) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	s := f.Schedule
	for i := range s.Operations[:min(most, len(s.Operations))] {
		o := &s.Operations[i]
		fmt.Fprintf(w, "%d\tthread %s\t%s\t%s\t= %d\n", i, s.Threads[o.Thread], o.Part, s.Describe(i), o.Result)
	}
	point := func(p *event.Point) string {
		if p.PC == 0 {
			return fmt.Sprintf("thread %s operation %d", s.Threads[p.Thread], p.Done)
		}
		return fmt.Sprintf("thread %s <%#x, %d branches, %d instructions after operation %d>", s.Threads[p.Thread], uint64(p.PC),
			p.Branches, p.Instructions, p.Done-1)
	}
	for i := range s.Constraints[:min(most, len(s.Constraints))] {
		c := &s.Constraints[i]
		note := ""
		if i < len(f.Notes) && f.Notes[i] != "" {
			note = "# " + f.Notes[i]
		}
		fmt.Fprintf(w, "constraint %d\t%s\tbefore\t%s\t%s\n", i, point(&c.First), point(&c.Second), note)
	}
	if o, c := len(s.Operations)-most, len(s.Constraints)-most; max(o, c) > 0 {
		fmt.Fprintf(w, "and %d operations and %d constraints more\n", max(o, 0), max(c, 0))
	}
	return w.Flush()
}
