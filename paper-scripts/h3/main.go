// Command h3 measures the contents of H3's tables 1 to 4, figure 6 and theorem 1, with the
// suite's programs in place of the paper's, and prints the paper's numbers beside ours (S. Huang, B. Cai
// and J. Huang, Towards production-run heisenbugs reproduction on commercial
// hardware, USENIX ATC 2017).
//
//	go run ./paper-scripts/h3 all
//	go run ./paper-scripts/h3 --timeout 60s --only bbuf,sbuf table4
//
// For each program it takes the first seed that fails. Times are processor times; counts
// are repeatable.
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/h3"
	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// subject is a program that stands for one of the paper's, with the paper's numbers.
type subject struct {
	paper, program, args string
	sched                sched.Options
	right                bool // another output than the serial one is the failure
	cores                int  // 0: as usual
	// instructions end a run that does not end by itself; 0: there is no limit.
	instructions uint64
	// table2 is the paper's: threads, instructions, seconds for the symbolic trace.
	// Without it the paper's table does not have the program.
	table2 []string
	// table4 is the paper's: unknowns, read-write constraints of CLAP, those of H3,
	// how many fewer those are, and seconds of solving CLAP's and H3's.
	table4 []string
}

var subjects = []subject{
	{
		paper: "bbuf", program: "bounded-buffer", args: "-p 5 -n 20",
		table2: []string{"5", "1235", "5.5"}, table4: []string{"79", "13902", "9982", "28.2", "98", "52"},
	},
	{
		paper: "sbuf", program: "string-buffer", args: "-p 2 -r 30", sched: sched.Options{Policy: sched.Random, Quantum: 200},
		table2: []string{"2", "64993", "1.6"}, table4: []string{"102", "302", "208", "31.1", "1", "1"},
	},
	{
		paper: "pfscan", program: "scanner", args: "-p 2 -n 8 -k 1", sched: sched.Options{Policy: sched.PCT, Depth: 3, Length: 400_000}, instructions: 2_100_000,
		table2: []string{"3", "1287", "2.5"}, table4: []string{"25", "60", "40", "33.3", "1", "1"},
	},
	{
		paper: "pbzip2", program: "compressor", args: "-p 1 -n 1 -b 1", sched: sched.Options{Policy: sched.PCT, Depth: 3, Length: 1_400_000},
		table2: []string{"4", "1844445", "8.7"}, table4: []string{"113", "1270", "840", "33.9", "2", "1"},
	},
	{
		paper: "racey1", program: "racey", args: "-p 4 -i 500", right: true,
		table2: []string{"4", "1229632", "107"}, table4: []string{"15040", "540388", "50388", "90.7", "-", "267"},
	},
	{
		paper: "racey2", program: "racey", args: "-p 4 -i 1000", right: true,
		table4: []string{"30108", "41607900", "200788", "99.5", "-", "-"},
	},
	{
		paper: "racey3", program: "racey", args: "-p 4 -i 1500", right: true,
		table4: []string{"67850", "1.3e8", "451188", "99.7", "-", "-"},
	},
}

func main() { newScript().Main(addFlags) }

// newScript is the command without its own flags.
func newScript() *study.Script {
	return &study.Script{Name: "h3", Short: "Measure H3's tables 1 to 4, figure 6 and theorem 1", Artefacts: []study.Artefact{
		*table1, // figure 6 is laid out from it
		{Name: "table2", Title: "Table 2: symbolic traces", Plan: planLayout(table2)},
		table3,
		{Name: "table4", Title: "Table 4: constraints, and solving them", Plan: planLayout(table4)},
		figure6Artefact("a", "size of the trace and time", &sheet.Chart{
			Kind: plots.Lines, Points: true, Over: "size", Columns: []string{"recorded"},
			X: plots.Axis{Title: "trace [bytes]"}, Y: plots.Axis{Title: "time with branches recorded [ms]"},
			Reported: []sheet.Reported{{Of: "recorded", Paper: "paper_recorded", OverPaper: "paper_size", ScaleY: 1000}},
		}),
		figure6Artefact("b", "branches and size of the trace", &sheet.Chart{
			Kind: plots.Lines, Points: true, Over: "branches", Columns: []string{"size"}, X: plots.Axis{Title: "branches"}, Y: plots.Axis{Title: "trace [bytes]"},
		}),
		figure6Artefact("c", "share of branches and overhead", &sheet.Chart{
			Kind: plots.Lines, Points: true, Over: "share", Columns: []string{"overhead"},
			X: plots.Axis{Title: "branches, of all instructions [%]"}, Y: plots.Axis{Title: "overhead [%]"},
		}),
		{Name: "theorem1", Title: "Theorem 1: choices of order", Plan: planTheorem1},
	}}
}

func addFlags(f *pflag.FlagSet) {
	f.Duration("timeout", 10*time.Second, "`TIME` of each solver")
	f.Int("events", 25_000, "do not ask Z3 about a trace of more than `N` events (table4): Z3 has a matrix of all pairs of them, 8 bytes each; 0: no bound")
	f.Int("times", 5, "`RUNS` that a mean is of (table3)")
	f.StringSlice("only", nil, "`PROGRAMS` of the paper to measure, and no others")
}

// layout is a table of the paper.
type layout struct {
	head  []table.Column
	notes []string
	// includes reports whether the paper's table has a program, and cells measures the cells of its
	// row except the first, which is its name, and the last.
	includes func(*subject) bool
	cells    func(context.Context, *reproduction) ([]string, error)
}

// planLayout lays a table out with the command line's settings.
func planLayout(l layout) func(*study.Options) (*study.Plan, error) {
	return func(o *study.Options) (*study.Plan, error) {
		bounds, err := readBounds(o)
		if err != nil {
			return nil, err
		}
		wanted, err := chosenSubjects(o)
		if err != nil {
			return nil, err
		}
		p := &study.Plan{Head: l.tableColumns(), Notes: l.notes}
		for _, s := range wanted {
			if l.includes(s) {
				p.Rows = append(p.Rows, l.planRow(s, bounds))
			}
		}
		return p, nil
	}
}

// bounds are those of a solver.
type bounds struct {
	Timeout time.Duration
	// Events is the length of the longest trace that Z3 is asked about; 0: there is no bound.
	Events int
}

func readBounds(o *study.Options) (b bounds, err error) {
	if b.Timeout, err = o.Flags.GetDuration("timeout"); err != nil {
		return b, err
	}
	if b.Events, err = o.Flags.GetInt("events"); err == nil && b.Events < 0 {
		err = fmt.Errorf("--events %d: 0 or more", b.Events)
	}
	return b, err
}

// chosenSubjects are the subjects that --only names, or all.
func chosenSubjects(o *study.Options) (list []*subject, err error) {
	var names []string
	for i := range subjects {
		names = append(names, subjects[i].paper)
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	for i := range subjects {
		if wanted(subjects[i].paper) {
			list = append(list, &subjects[i])
		}
	}
	return list, nil
}

// tableColumns are those of the table, between the program and a remark.
func (l *layout) tableColumns() []table.Column {
	head := append([]table.Column{{Name: "program", Key: "program"}}, l.head...)
	return append(head, table.Column{Name: "remark", Key: "remark"})
}

// planRow plans the row of a subject.
func (l *layout) planRow(s *subject, b bounds) study.Row {
	return study.Row{
		Name: s.paper, Key: []any{s.paper, b},
		Measure: study.InFolder(s.paper, len(l.head)+2, func(ctx context.Context, dir string) ([]string, error) {
			cells, err := s.measureSubject(ctx, dir, b, l.cells)
			return slices.Concat([]string{s.paper}, cells, []string{""}), err
		}),
	}
}

// reproduction is a failure that was recorded and reproduced.
type reproduction struct {
	*subject
	recording *h3.Recording
	options   h3.Options
	outcome   *h3.Outcome
	bounds    bounds
}

// measureSubject records a failure in a folder and reproduces it, and gives the cells that come of that.
func (s *subject) measureSubject(ctx context.Context, dir string, b bounds, cells func(context.Context, *reproduction) ([]string, error)) ([]string, error) {
	file := filepath.Join(dir, "failing.trace")
	right, err := recordFailure(ctx, s, file)
	if err != nil {
		return nil, err
	}
	r := &reproduction{subject: s, bounds: b}
	if r.recording, err = h3.Open(ctx, file); err != nil {
		return nil, err
	}
	defer r.recording.Close()
	r.options = h3.Options{Now: study.ProcessorClock, Timeout: max(b.Timeout, time.Minute), Stdout: right, Symbolic: true}
	if r.outcome, err = r.recording.Reproduce(ctx, r.options); err != nil {
		return nil, err
	}
	if !r.outcome.Verified {
		return nil, study.Unmeasurable{Reason: strings.TrimSpace(fmt.Sprintf("not reproduced: %s %s", r.outcome.Ending, r.outcome.Divergence))}
	}
	return cells(ctx, r)
}
