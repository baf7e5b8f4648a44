package find

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
)

// Report is the result of a search.
type Report struct {
	// Failures are the failures that were found, in the order in which they were.
	Failures []Found
	// Accepted is the exit status of the undisturbed run, which is no failure.
	Accepted int
	// Tried is the number of schedules that were executed, the failing one included.
	Tried int
	// Instructions is the number of instructions at which schedules decide, Points the greatest number
	// of decisions in a schedule, and Threads that of threads in a run.
	Instructions, Threads int
	Points                uint64
	// Decisions is the number of decisions of all schedules.
	Decisions uint64
	// Counts has the numbers of schedules of each kind, in the order in which the kinds have their
	// turns.
	Counts []Count
	// Guarantees are those of PCT for failures of depth 2 and 3.
	Guarantees []Guarantee
	// Outputs are the different standard outputs of schedules, in the order in which they were first seen, up to a
	// number; OtherOutputs is the number of schedules that ended with others.
	Outputs      []Output
	OtherOutputs int
	// Unended is the number of instructions of the undisturbed run if the search was cut short in it, or 0.
	Unended uint64
	// Ended is why the search was cut short, or empty.
	Ended string

	isOfAll    bool // of a search that does not end at a failure
	checksHeap bool // of a search with Options.HeapCheck
}

// Found is a failure that was found.
type Found struct {
	Failure machine.Failure
	// Where is where the program fails: a source line and a function, or as much as is known.
	Where string
	// Number is the number of the first schedule with the failure, from 1 on; 0: the undisturbed run fails.
	Number int
	Kind   Kind
	// Recorded is the number of the schedule that is recorded, which fails in the same way.
	Recorded int
	// Switches is how often the thread changed, from the creation of the second thread on.
	Switches uint64
	// Schedules is the number of schedules with the failure.
	Schedules int
	// Output is the output of a run whose output is wrong, and Reason why it is.
	Output, Reason string
	// Trace is the file with the recording of the failing run.
	Trace string
	// Shortest describes the shortest schedule with the failure that was found, whose run is recorded; nil if
	// none was looked for.
	Shortest *minimize.Report
	// NotShortened is why the search for a shorter schedule has failed, or empty.
	NotShortened string
}

// Kind is a kind of schedules.
type Kind struct {
	Strategy string
	Model    memmodel.Model
	// Focused schedules decide only at accesses to one line of memory, and where a thread waits.
	Focused bool
}

// Count is a number of schedules of a kind.
type Count struct {
	Kind
	Schedules int
}

// Reasons of Report.Ended.
const (
	EndedByTime   = "time"
	EndedByCaller = "interrupted"
)

// String describes the kind as sentences name it.
func (k Kind) String() string {
	text := fmt.Sprintf("%s under %v", k.Strategy, k.Model)
	if k.Focused {
		text += ", at one line of memory"
	}
	return text
}

// Write writes the report as text.
func (r *Report) Write(w io.Writer) error {
	var err error
	print := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	switch {
	case r.Unended > 0:
		print("no schedule was tried: the undisturbed run, which comes first, has not ended after %d instructions of %d threads", r.Unended, r.Threads)
		print("the program has to end: give it less to do, or an input after which it ends")
	case len(r.Failures) == 0:
		print("no failure in %d schedules", r.Tried)
	}
	for i := range r.Failures {
		if err == nil {
			err = r.Failures[i].write(w, r.isOfAll)
		}
	}
	if r.Accepted != 0 {
		print("the undisturbed run exits with status %d, which is no failure", r.Accepted)
	}
	if r.Tried > 0 {
		print("schedules tried: %d, of %d threads; decisions at %d instructions, at most %d in a schedule", r.Tried, r.Threads, r.Instructions, r.Points)
	}
	if len(r.Failures) > 0 && !r.isOfAll {
		return err
	}
	if err == nil {
		err = r.writeCounts(w)
	}
	lines := r.bounds()
	if len(r.Failures) == 0 {
		lines = append(lines, r.outputLines()...)
		if r.Tried > 0 && !r.checksHeap {
			lines = append([]string{"uses of freed memory and overflows that crash nothing are no failures here; with --heap-check they are"}, lines...)
		}
	}
	for _, x := range lines {
		print("%s", x)
	}
	return err
}

// write writes the failure as text.
func (f *Found) write(w io.Writer, all bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "failure: %v\n", f.Failure)
	if f.Output != "" {
		fmt.Fprintf(&text, "the output is %s; %s\n", f.Output, f.Reason)
	}
	if f.Where != "" {
		fmt.Fprintf(&text, "at %s\n", f.Where)
	}
	if f.Number == 0 {
		fmt.Fprintf(&text, "the undisturbed run fails, before any schedule was tried\n")
	} else {
		fmt.Fprintf(&text, "found by schedule %d: %v, with %d switches of threads\n", f.Number, f.Kind, f.Switches)
	}
	if all {
		fmt.Fprintf(&text, "schedules with this failure: %d\n", f.Schedules)
	}
	if f.Recorded != f.Number {
		fmt.Fprintf(&text, "schedule %d fails in the same way, and has fewer switches\n", f.Recorded)
	}
	fmt.Fprintf(&text, "the run is recorded, and its replay fails in the same way:\n  heddle replay %s\n", f.Trace)
	if f.NotShortened != "" {
		fmt.Fprintf(&text, "its schedule could not be made shorter: %s\n", f.NotShortened)
	}
	if _, err := io.WriteString(w, text.String()); err != nil || f.Shortest == nil {
		return err
	}
	return f.writeShortest(w)
}

// writeShortest describes the shortest schedule.
func (f *Found) writeShortest(w io.Writer) error {
	p := f.Shortest
	if !p.Reproduced {
		_, err := fmt.Fprintf(w, "no shorter schedule was found in %d runs\n", p.Runs)
		return err
	}
	_, err := fmt.Fprintf(w, "it is the shortest that %d runs have found: %d context switches, %d delayed stores\n", p.Runs, p.After.Switches, p.After.Delays)
	if err != nil {
		return err
	}
	return p.WriteSteps(w)
}

// writeCounts writes the numbers of schedules as a table.
func (r *Report) writeCounts(w io.Writer) error {
	if r.Tried == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\nstrategy\tdecides\tmodel\tschedules\n")
	for _, c := range r.Counts {
		where := "everywhere"
		if c.Focused {
			where = "at one line"
		}
		fmt.Fprintf(table, "%s\t%s\t%v\t%d\n", c.Strategy, where, c.Model, c.Schedules)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// bounds says with which probability the schedules of PCT would have found a failure: the theorem of Burckhardt
// and others, 1/(n k^(d-1)) for a failure of depth d, holds under sequential consistency for schedules whose k
// is not less than the number of points of a run.
func (r *Report) bounds() (list []string) {
	for _, g := range r.Guarantees {
		if g.Schedules == 0 || r.Points == 0 {
			continue
		}
		one := 1 / (float64(r.Threads) * math.Pow(float64(g.Points), float64(g.Depth-1)))
		all := -math.Expm1(float64(g.Schedules) * math.Log1p(-one))
		list = append(list, fmt.Sprintf("PCT of depth %d, in %d schedules: a failure of that depth is found with a probability of at least %.2g, if there is one", g.Depth, g.Schedules, all))
	}
	return list
}

// Guarantee is a number of schedules for which PCT has its guarantee.
type Guarantee struct {
	// Depth is that of the failures, Points the number k of points among which the schedules have drawn.
	Depth     int
	Points    uint64
	Schedules int
}
