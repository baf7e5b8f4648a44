package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Failures makes an experiment one about runs that fail: its table counts them, by
// class, and the shortest failing schedules are looked for.
type Failures struct {
	// Count asks for the table of failures.
	Count bool `mapstructure:"count"`
	// Minimize is how many failing runs of each row are made shorter: those with
	// the fewest turns of threads. 0 means none.
	Minimize int `mapstructure:"minimize"`
	// Runs bounds how many schedules are tried for each; 0 means no bound.
	Runs int `mapstructure:"runs"`
	// First ends the seeds of a row at the first one that fails: later ones are not executed, and do not count.
	First bool `mapstructure:"first"`
	// Folder receives, for each of them, the trace of the shortest run, a timeline
	// for Perfetto and a report. The default is a folder beside the store.
	Folder string `mapstructure:"folder"`
}

// isWanted reports whether the experiment is about failures.
func (f Failures) isWanted() bool { return f.Count || f.First || f.Minimize > 0 }

// firstFailures has, for each row, the place in the plan of the first run that fails, of those that are known. Several
// goroutines may use it.
type firstFailures struct {
	mu     sync.Mutex
	places map[string]int
}

// note notes that a run fails.
func (f *firstFailures) note(run Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := run.Point.withoutSeed().storeSlot()
	if known, ok := f.places[row]; ok && known <= run.place {
		return
	}
	if f.places == nil {
		f.places = map[string]int{}
	}
	f.places[row] = run.place
}

// precedes reports whether an earlier run of the row fails.
func (f *firstFailures) precedes(run Run) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	place, ok := f.places[run.Point.withoutSeed().storeSlot()]
	return ok && place < run.place
}

// maxMinimize bounds Failures.Minimize, and maxTries Failures.Runs.
const (
	maxMinimize = 1000
	maxTries    = 1_000_000
)

func (x *Experiment) checkFailures() error {
	f := x.Failures
	switch {
	case f.Minimize < 0 || f.Minimize > maxMinimize:
		return fieldError("failures.minimize", f.Minimize, fmt.Sprintf("0 to %d", maxMinimize))
	case f.Runs < 0 || f.Runs > maxTries:
		return fieldError("failures.runs", f.Runs, fmt.Sprintf("0 to %d", maxTries))
	case f.Folder != "" && f.Minimize == 0:
		return fieldError("failures.folder", f.Folder, "a folder only where minimize is at least 1")
	}
	return nil
}

// failureFolder is where the files of shortest runs go under the options.
func (x *Experiment) failureFolder(o Options) string {
	if x.Failures.Folder != "" && o.Store == "" {
		return x.Failures.Folder
	}
	return strings.TrimSuffix(x.StorePath(o), ".sqlite") + ".failures"
}

// classOf is the class of a run's failure, or empty.
func classOf(record store.Record, native store.Native, hasNative bool) string {
	r := record.Report.Result
	if f, failed := r.Failure(nil); failed && !(hasNative && f.Class == machine.FailureWrong && r.ExitCode == native.ExitCode) {
		return f.Class
	}
	if hasNative && (!record.Report.PrintsAs(&native) || r.ExitCode != native.ExitCode) {
		return machine.FailureWrong
	}
	return ""
}

// failed are a row's failures.
type failed struct {
	n       int
	classes map[string]int // for look-up only
	seeds   []uint64
	best    *minimize.Report // the shortest schedule, if one was looked for
}

// countFailure notes a run that failed.
func (f *failed) countFailure(class string, seed uint64) {
	if f.classes == nil {
		f.classes = map[string]int{}
	}
	f.n++
	f.classes[class]++
	if !slices.Contains(f.seeds, seed) {
		f.seeds = append(f.seeds, seed)
	}
}

// keepShortest notes a shortest schedule.
func (f *failed) keepShortest(p *minimize.Report) {
	if f.best == nil || p.After.Less(f.best.After) {
		f.best = p
	}
}

// axis is a parameter that can be a column of its own.
type axis struct {
	column table.Column
	varied bool
	value  func(*row) string
}

func (x *Experiment) gridAxes() []axis {
	g := x.Grid
	many := func(n int) bool { return n > 1 }
	return append([]axis{
		{table.Column{Name: "policy", Key: "policy"}, many(len(g.Policy)), func(r *row) string { return r.point.Policy }},
		{table.Column{Name: "cores", Key: "cores", Number: true}, many(len(g.Cores)), func(r *row) string { return strconv.Itoa(r.point.Cores) }},
		{table.Column{Name: "threads", Key: "threads", Number: true}, countValues(g.Threads) > 1, func(r *row) string { return orDash(r.point.Threads) }},
	}, x.memoryAxes()...)
}

// memoryAxes are those of memory models that the grid lists.
func (x *Experiment) memoryAxes() []axis {
	g := x.Grid
	all := []axis{
		{table.Column{Name: "model", Key: "model"}, len(g.Model) > 0, func(r *row) string { return r.point.Memory.Model }},
		{table.Column{Name: "commit", Key: "commit"}, len(g.Commit) > 0, func(r *row) string { return textOrDash(r.point.Memory.Commit) }},
		{table.Column{Name: "buffer", Key: "capacity", Number: true}, len(g.Capacity) > 0, func(r *row) string { return orDash(r.point.Memory.Capacity) }},
	}
	return slices.DeleteFunc(all, func(a axis) bool { return !a.varied })
}

func textOrDash(text string) string {
	if text == "" {
		return missing
	}
	return text
}

// failureTable is the table of an experiment about failures.
func (c *collection) failureTable() *table.Table {
	t := &table.Table{Head: slices.Clone(firstColumns), Notes: c.failureNotes()}
	for _, name := range c.x.argumentNames() {
		t.Head = append(t.Head, table.Column{Name: name, Key: name})
	}
	axes := slices.DeleteFunc(c.x.gridAxes(), func(a axis) bool { return !a.varied })
	for _, a := range axes {
		t.Head = append(t.Head, a.column)
	}
	t.Head = append(t.Head, table.Column{Name: "runs", Key: "runs", Number: true}, table.Column{Name: "fail", Key: "failures", Number: true})
	for _, class := range machine.FailureClasses() {
		t.Head = append(t.Head, table.Column{Name: class, Key: strings.ReplaceAll(class, " ", "_"), Number: true})
	}
	t.Head = append(t.Head, table.Column{Name: "seeds", Key: "seeds"})
	if c.x.Failures.Minimize > 0 {
		t.Head = append(t.Head, table.Column{Name: "switches", Key: "shortest_switches", Number: true},
			table.Column{Name: "delayed", Key: "shortest_delayed_stores", Number: true}, table.Column{Name: "from", Key: "recorded_switches", Number: true})
	}
	for _, r := range c.shown {
		t.Rows = append(t.Rows, c.failureCells(r, axes))
	}
	return t
}

func (c *collection) failureCells(r *row, axes []axis) []string {
	cells := []string{r.point.Program}
	for _, name := range c.x.argumentNames() {
		cells = append(cells, r.point.argument(name))
	}
	for _, a := range axes {
		cells = append(cells, a.value(r))
	}
	cells = append(cells, strconv.Itoa(r.n), strconv.Itoa(r.fails.n))
	for _, class := range machine.FailureClasses() {
		cells = append(cells, orDash(r.fails.classes[class]))
	}
	cells = append(cells, formatRanges(r.fails.seeds))
	switch p := r.fails.best; {
	case c.x.Failures.Minimize == 0:
	case p == nil:
		cells = append(cells, "-", "-", "-")
	default:
		cells = append(cells, strconv.Itoa(p.After.Switches), strconv.Itoa(p.After.Delays), strconv.Itoa(p.Before.Switches))
	}
	return cells
}

// maxRanges is how many ranges of seeds a cell has at most.
const maxRanges = 12

// formatRanges writes numbers as ranges: 1-3 7 9-12.
func formatRanges(list []uint64) string {
	if len(list) == 0 {
		return "-"
	}
	slices.Sort(list)
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		parts = append(parts, Range{list[i], list[k]}.String())
		i = k + 1
	}
	if len(parts) > maxRanges {
		parts = append(parts[:maxRanges], "...")
	}
	return strings.Join(parts, " ")
}

func (c *collection) failureNotes() []string {
	notes := []string{"Failures are those of the program: a failed assertion, a crash, no end within the limit of instructions, a deadlock, a wrong output or status."}
	if c.x.Failures.Minimize > 0 {
		notes = append(notes, "Switches and delayed stores are those of the shortest failing schedule that was found; its trace, timeline and report are in "+c.folder+".")
	}
	return append(notes, c.storeNotes()...)
}
