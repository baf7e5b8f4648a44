package explore

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
)

// Report is the result of an exploration.
type Report struct {
	// Found: a run fails. Failure is how.
	Found   bool            `json:"-"`
	Failure machine.Failure `json:"-"`
	// Undisturbed: it is the first run, before the exploration.
	Undisturbed bool `json:"-"`
	// Accepted is the exit status of the undisturbed run, which is no failure.
	Accepted int            `json:"-"`
	Model    memmodel.Model `json:"-"`
	// Complete: every class of executions was explored.
	Complete bool `json:"-"`
	// Bound is that of the executions, nil if there is none. Explored is the number up to which all are explored, -1 if none
	// is, and Cut says that executions of greater cost were left out. Long: an execution has so many events that
	// executions are explored by their preemptions.
	Bound     *Bound `json:"-"`
	Explored  int    `json:"-"`
	Cut, Long bool   `json:"-"`
	// Executions is the number of executions to their ends, no two of them equivalent.
	Executions int
	// Outlasted is the number of executions that were left because a thread had repeated loads of which
	// the values had changed since: others are equal but for the repetitions.
	Outlasted int
	// Redundant is the number of executions that were left because others are equivalent.
	Redundant int
	// Restarts is how often the exploration began anew with more events.
	Restarts int
	// Events is the greatest number of events of an execution, Instructions the number of instructions that
	// are events, Threads the greatest number of threads.
	Events, Instructions, Threads int
	// Outputs are the different standard outputs, in the order in which they were first seen, up to a
	// number; OtherOutputs is the number of executions with others.
	Outputs      []Output
	OtherOutputs int

	notes notes
}

// Output is a standard output of executions.
type Output struct {
	Text       string // its beginning
	Bytes      int    // its length
	Executions int
	Sum        [sha256.Size]byte
}

const (
	outputText  = 60  // bytes of an output that are kept
	outputsKept = 256 // different outputs that are told apart
	outputsSeen = 16  // outputs in the text of a report
)

// noteOutput counts the output of an execution.
func (x *exploration) noteOutput(stdout []byte) {
	sum := sha256.Sum256(stdout)
	at, known := x.outputs[sum]
	switch {
	case known:
		x.report.Outputs[at].Executions++
	case len(x.report.Outputs) == outputsKept:
		x.report.OtherOutputs++
	default:
		x.outputs[sum] = len(x.report.Outputs)
		x.report.Outputs = append(x.report.Outputs, Output{string(stdout[:min(len(stdout), outputText)]), len(stdout), 1, sum})
	}
}

// count writes a number with commas between thousands.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Write writes the report as text. Trace is the name of the file with the recording of the failing run.
func (r *Report) Write(w io.Writer, trace string) error {
	var err error
	print := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	switch {
	case r.Undisturbed:
		print("failure: %v", r.Failure)
		print("the undisturbed run fails, before any other execution")
	case r.Found:
		print("failure: %v", r.Failure)
		print("found by execution %s under %v", count(r.Executions), r.Model)
	case r.Complete && r.Bound != nil && r.Cut:
		print("verified for at most %s: %s executions under %v, none fails", r.Bound.of(r.Explored), count(r.Executions), r.Model)
		print("executions with more are not explored, and may fail")
	case r.Complete:
		print("verified: %s executions under %v, none fails", count(r.Executions), r.Model)
	case r.Executions == 0:
		print("not verified: no execution has ended: the program needs less to do, or an input after which it ends, or more time")
	default:
		print("not verified: %s executions under %v, none fails; there are others", count(r.Executions), r.Model)
	}
	if r.Long {
		print("an execution has more than %s events: executions are explored by their preemptions, few first", count(mostEvents))
	}
	if !r.Complete && !r.Found && r.Bound != nil && r.Explored >= 0 {
		print("all executions with at most %s are explored", r.Bound.of(r.Explored))
	}
	if r.Accepted != 0 {
		print("the undisturbed run exits with status %d, which is no failure", r.Accepted)
	}
	if !r.Undisturbed && r.Executions > 0 {
		print("threads: %d; events: at most %s in an execution, at %d instructions", r.Threads, count(r.Events), r.Instructions)
	}
	if r.Outlasted > 0 {
		print("%s executions were left in which a thread spins longer than in others", count(r.Outlasted))
	}
	if r.Redundant > 0 {
		print("%s executions were left since others are equivalent", count(r.Redundant))
	}
	if r.Found {
		print("the run is recorded, and its replay fails in the same way:")
		print("  heddle replay %s", trace)
		return err
	}
	for _, line := range r.notes.lines() {
		print("%s", line)
	}
	r.writeOutputs(print)
	return err
}

// lines are the limits of what is verified.
func (n *notes) lines() (list []string) {
	if n.readsTime {
		list = append(list, "the program reads the time: other values than those of the machine's clock were not explored")
	}
	if n.unmaps {
		list = append(list, "the program unmaps memory that several threads use: orders of that and of accesses to it were not explored")
	}
	return list
}

// writeOutputs lists the outputs, if they differ.
func (r *Report) writeOutputs(print func(string, ...any)) {
	if len(r.Outputs) < 2 {
		return
	}
	print("outputs differ; with --expect FILE an execution whose output is not FILE's is a failure:")
	others := r.OtherOutputs
	for i, o := range r.Outputs {
		if i >= outputsSeen {
			others += o.Executions
			continue
		}
		text := strconv.Quote(o.Text)
		if o.Bytes > len(o.Text) {
			text += fmt.Sprintf("... (%d bytes)", o.Bytes)
		}
		print("  %s: %s executions", text, count(o.Executions))
	}
	if others > 0 {
		print("  others: %s executions", count(others))
	}
}
