package reproduce

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/heddle-dmt/heddle/analyses/reproduce/constraints"
	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/minimal"
)

// Report says what came of an attempt, for people. With explain it also says what
// the threads share, and what the formula consists of.
func (r *Recording) Report(to io.Writer, out *Outcome, explain bool) error {
	t := out.Trace
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "failure:\t%v\n", out.Failure)
	for _, p := range out.Passed {
		fmt.Fprintf(w, "passed over:\tcheckpoint %s\n", p)
	}
	if out.Checkpoint > 0 {
		fmt.Fprintf(w, "checkpoint:\tnumber %d, behind %d instructions\n", out.Checkpoint, out.Behind)
	}
	fmt.Fprintf(w, "paths:\t%d threads, %d instructions followed, in %d rounds\n", len(t.Threads), t.Instructions, t.Rounds)
	fmt.Fprintf(w, "shared:\t%d bytes in %d pieces, %s\n", sharedBytes(t), len(t.Shared), out.Sharing)
	fmt.Fprintf(w, "trace:\t%d events, %d conditions of paths, %d of the failure\n", len(t.Trace.Events), len(t.Trace.Path), len(t.Trace.Bug))
	fmt.Fprintf(w, "memory model:\t%v\n", out.Model)
	fmt.Fprintf(w, "answer:\t%s\n", out.answer())
	if out.Answer == smt.Satisfiable {
		fmt.Fprintf(w, "switches:\t%d\n", out.Schedule.Switches(t.Trace))
		fmt.Fprintf(w, "run:\t%s\n", out.ran())
	}
	if err := w.Flush(); err != nil || !explain {
		return err
	}
	return r.explain(to, out)
}

func sharedBytes(t *symtrace.Result) (n uint64) {
	for _, s := range t.Shared {
		n += s.End - s.Start
	}
	return n
}

func (out *Outcome) answer() string {
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
		if out.Others > 0 {
			text += fmt.Sprintf(", and with other values for addresses %d times", out.Others)
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
		return fmt.Sprintf("no schedule found: values were chosen for %d addresses, and not all others were tried; others were %d times, %s", out.assumptions(), out.Others, how)
	case LimitSharing:
		return "not decided: there is no schedule if nothing else is shared, " + how
	case LimitTime:
		return "not decided: the time was over, " + how
	case LimitMemory:
		return "not decided: the solver came to its limit of memory, " + how
	}
	return "not decided within the limits, " + how
}

func (out *Outcome) ran() string {
	switch {
	case out.Verified && out.Why == "":
		return "the program fails in the same way under the schedule"
	case out.Verified:
		return "the program fails in the same way, but leaves the schedule: " + out.Why
	case out.Why != "":
		return fmt.Sprintf("it ends with %s, and leaves the schedule: %s", out.Found, out.Why)
	}
	return "it ends with " + out.Found
}

// explain lists what is shared, and counts the formula.
func (r *Recording) explain(to io.Writer, out *Outcome) error {
	fmt.Fprintf(to, "\nshared, %s:\n", out.Sharing)
	for _, s := range out.Trace.Shared {
		fmt.Fprintf(to, "  %#x-%#x  %s\n", s.Start, s.End, r.start.names.name(s.Start, s.End))
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

// name names what lies in a range.
func (n *names) name(start, end uint64) string {
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
	p, err := minimal.Explain(ctx, file, minimal.Options{Perfetto: perfetto, Stdout: stdout})
	if err != nil {
		return err
	}
	fmt.Fprintln(to)
	return p.WriteSteps(to)
}
