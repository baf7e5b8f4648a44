package h3

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/minimize"
)

// Report describes the result of an attempt, for people. With explain it also lists the shared
// memory, and the parts of the formula.
func (r *Recording) Report(to io.Writer, out *Outcome, explain bool) error {
	t := out.Trace
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "failure:\t%v\n", out.Failure)
	for _, p := range out.SkippedCheckpoints {
		fmt.Fprintf(w, "passed over:\tcheckpoint %s\n", p)
	}
	if out.Checkpoint > 0 {
		fmt.Fprintf(w, "checkpoint:\tnumber %d, after %d instructions\n", out.Checkpoint, out.CheckpointInstructions)
	}
	if out.Executed == nil {
		fmt.Fprintf(w, "paths:\t%d threads, %d instructions followed, in %d rounds\n", len(t.Threads), t.Instructions, t.Passes)
		fmt.Fprintf(w, "shared:\t%d bytes in %d pieces, %s\n", sharedBytes(t), len(t.Shared), out.Sharing)
		fmt.Fprintf(w, "trace:\t%d events, %d conditions of paths, %d of the failure\n", len(t.Trace.Events), len(t.Trace.Path), len(t.Trace.Bug))
	}
	fmt.Fprintf(w, "memory model:\t%v\n", out.Model)
	fmt.Fprintf(w, "answer:\t%s\n", out.describeAnswer())
	if out.Answer == smt.Satisfiable {
		fmt.Fprintf(w, "switches:\t%d\n", out.switches())
		fmt.Fprintf(w, "run:\t%s\n", out.describeRun())
	}
	if err := w.Flush(); err != nil || !explain || out.Executed != nil {
		return err
	}
	return r.explainTrace(to, out)
}

func sharedBytes(t *symtrace.Result) (n uint64) {
	for _, s := range t.Shared {
		n += s.End - s.Start
	}
	return n
}

// switches is how often the schedule switches between threads.
func (out *Outcome) switches() (n int) {
	if out.Executed == nil {
		return out.Schedule.Switches(out.Trace.Trace)
	}
	for i, s := range out.Plan.Steps {
		if i > 0 && s.Thread != out.Plan.Steps[i-1].Thread {
			n++
		}
	}
	return n
}

func (out *Outcome) describeAnswer() string {
	if x := out.Executed; x != nil {
		return fmt.Sprintf("a schedule, by executing the program along the paths of its threads (%d moves, %d attempts)", x.Moves, x.Attempts+1)
	}
	how := fmt.Sprintf("by a search through %d states", out.States)
	if out.System != nil && out.States == 0 {
		how = fmt.Sprintf("by Z3, %s encoding", out.System.Encoding)
		if out.Rounds > 0 {
			how += fmt.Sprintf(", with the constraints of %d reads, asked %d times", out.System.Reads, out.Rounds)
		}
	}
	switch out.Answer {
	case smt.Satisfiable:
		return "a schedule, " + how
	case smt.Unsatisfiable:
		text := "there is no schedule, " + how
		if out.OtherAttempts > 0 {
			text += fmt.Sprintf(", and with other values for addresses %d times", out.OtherAttempts)
		}
		if len(out.Conflict) > 0 {
			var names []string
			for _, f := range out.Conflict {
				names = append(names, f.String())
			}
			text += "; these contradict each other: " + strings.Join(names, ", ")
		}
		return text
	}
	switch out.Limit {
	case LimitChosen:
		return fmt.Sprintf("no schedule found: values were chosen for %d addresses, and not all others were tried; others were %d times, %s", out.countAssumptions(), out.OtherAttempts, how)
	case LimitSharing:
		return "not decided: there is no schedule if nothing else is shared, " + how
	case LimitTime:
		return "not decided: the time limit was reached, " + how
	case LimitMemory:
		return "not decided: the solver reached its limit of memory, " + how
	}
	return "not decided within the limits, " + how
}

func (out *Outcome) describeRun() string {
	switch {
	case out.Verified && out.Divergence == "":
		return "the program fails in the same way under the schedule"
	case out.Verified:
		return "the program fails in the same way, but leaves the schedule: " + out.Divergence
	case out.Divergence != "":
		return fmt.Sprintf("it ends with %s, and leaves the schedule: %s", out.Ending, out.Divergence)
	}
	return "it ends with " + out.Ending
}

// explainTrace lists the shared memory, and counts the formula.
func (r *Recording) explainTrace(to io.Writer, out *Outcome) error {
	fmt.Fprintf(to, "\nshared, %s:\n", out.Sharing)
	for _, s := range out.Trace.Shared {
		fmt.Fprintf(to, "  %#x-%#x  %s\n", s.Start, s.End, r.start.names.nameOfRange(s.Start, s.End))
	}
	if out.System == nil {
		system, err := constraints.New(out.Trace.Trace, out.Model, constraints.Pruned{}, 0)
		if err != nil {
			return err
		}
		out.System = system
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nconstraints, %s encoding\tclauses\tcomparisons\n", out.System.Encoding)
	for _, f := range constraints.Families() {
		fmt.Fprintf(w, "%v\t%d\t%d\n", f, out.System.Clauses(f), out.System.Atoms(f))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	kinds := map[model.Kind]int{}
	for i := range out.Trace.Trace.Events {
		kinds[out.Trace.Trace.Events[i].Kind]++
	}
	fmt.Fprintf(to, "\nevents:")
	for k := model.Read; k <= model.Take; k++ {
		if kinds[k] > 0 {
			fmt.Fprintf(to, " %d %v", kinds[k], k)
		}
	}
	_, err := fmt.Fprintln(to)
	return err
}

// nameOfRange names the variables in a range.
func (n *symbolNames) nameOfRange(start, end uint64) string {
	var all []string
	for _, v := range n.variables {
		if v.Addr < end && start < v.Addr+v.Size {
			all = append(all, v.name)
		}
	}
	if len(all) == 0 {
		return "allocated"
	}
	return strings.Join(all, ", ")
}

// Steps writes the steps of the run that verified the schedule, with source lines,
// and, if perfetto names a file, a timeline of it.
func (out *Outcome) Steps(ctx context.Context, to io.Writer, perfetto string, stdout []byte) error {
	dir, err := os.MkdirTemp("", "heddle-reproduce")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "run.trace")
	if err := out.KeepRecording(file); err != nil {
		return err
	}
	o := minimize.Options{Perfetto: perfetto}
	if stdout != nil {
		o.Right.Stdouts = [][]byte{stdout}
	}
	p, err := minimize.Explain(ctx, file, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(to)
	return p.WriteSteps(to)
}
