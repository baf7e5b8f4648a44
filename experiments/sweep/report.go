package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
)

// row is the stored runs of one point of the grid without its seeds.
type row struct {
	point     Point
	n         int     // runs with a result
	cycles    float64 // sums over the runs
	instr     float64
	switches  float64
	schedules map[string]bool
	identical int // runs with the output and status of the native one
	native    bool
	failed    int
	fails     failed
}

// Table makes the table of the stored results: a row for each point of the grid,
// grouped over seeds and repetitions.
func (x *Experiment) Table(o Options) (*table.Table, error) {
	results, err := store.OpenExisting(x.StorePath(o))
	if err != nil {
		return nil, err
	}
	defer results.Close()
	plan, err := x.Plan(o)
	if err != nil {
		return nil, err
	}
	c := collection{store: results, x: x, bySlot: map[string]*row{}, folder: x.failureFolder(o)}
	for _, run := range plan.Runs {
		if err := c.addRun(run); err != nil {
			return nil, err
		}
	}
	if c.found == 0 {
		return nil, errNothingStored.New(c.total, x.path, x.StorePath(o))
	}
	if x.Failures.isWanted() {
		return c.failureTable(), nil
	}
	return &table.Table{Head: c.tableHead(), Rows: c.tableCells(), Notes: c.tableNotes()}, nil
}

// collection gathers rows in the plan's order.
type collection struct {
	store            *store.Store
	x                *Experiment
	rows             []*row
	bySlot           map[string]*row
	folder           string // of the shortest failing runs
	total, found     int
	stale, conflicts int
	failures         []string // the runs without a result, with their sentences
}

// addRun looks the run's results up.
func (c *collection) addRun(run Run) error {
	r := c.rowOf(run.Point.withoutSeed())
	conflict, err := c.store.HasConflict(run.Key)
	if err != nil {
		return err
	}
	if conflict {
		c.conflicts++
	}
	native, hasNative, err := c.store.GetNative(run.NativeKey)
	if err != nil {
		return err
	}
	for repetition := 1; repetition <= c.x.Repetitions; repetition++ {
		c.total++
		record, ok, err := c.store.Get(run.Point.storeSlot(), repetition)
		if err != nil {
			return err
		}
		if ok {
			c.countRun(r, run, record, native, hasNative && c.x.Native && native.Failure == "")
		}
	}
	var shortest minimize.Report
	ok, err := c.store.GetShortest(run.Key, &shortest)
	if ok {
		r.fails.keepShortest(&shortest)
	}
	return err
}

// rowOf returns the row of a group, a new one at its first run.
func (c *collection) rowOf(group Point) *row {
	slot := group.storeSlot()
	r, ok := c.bySlot[slot]
	if !ok {
		r = &row{point: group, schedules: map[string]bool{}}
		c.rows = append(c.rows, r)
		c.bySlot[slot] = r
	}
	return r
}

func (c *collection) countRun(r *row, run Run, record store.Record, native store.Native, hasNative bool) {
	c.found++
	if record.Key != run.Key {
		c.stale++
	}
	result := record.Report.Result
	if record.Failure != "" || result == nil {
		c.failures = append(c.failures, run.Point.String()+": "+record.Failure)
		r.failed++
		return
	}
	r.n++
	r.cycles += float64(record.Report.Cycles())
	r.instr += float64(result.Instructions)
	r.switches += float64(result.ContextSwitches)
	r.schedules[result.ScheduleDigest] = true
	if class := classOf(record, native, hasNative); class != "" {
		r.fails.countFailure(class, run.Point.Seed)
	}
	r.native = r.native || hasNative
	if hasNative && record.Report.PrintsAs(&native) && result.ExitCode == native.ExitCode {
		r.identical++
	}
}

// Columns of the head besides the arguments, which come after the program, and the
// memory models, which come after the policy.
var (
	firstColumns = []table.Column{{Name: "program", Key: "program"}}
	otherColumns = []table.Column{
		{Name: "cores", Key: "cores", Number: true},
		{Name: "threads", Key: "threads", Number: true},
		{Name: "runs", Key: "runs", Number: true},
		{Name: "speed-up", Key: "speedup", Number: true},
		{Name: "cycles", Key: "cycles", Number: true},
		{Name: "instructions", Key: "instructions", Number: true},
		{Name: "switches", Key: "context_switches", Number: true},
		{Name: "schedules", Key: "distinct_schedules", Number: true},
		{Name: "as native", Key: "identical_to_native"},
	}
)

// argumentNames lists the names of all arguments of the experiment, sorted.
func (x *Experiment) argumentNames() []string {
	var names []string
	for name := range x.Grid.Arguments {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *collection) tableHead() []table.Column {
	head := slices.Clone(firstColumns)
	for _, name := range c.x.argumentNames() {
		head = append(head, table.Column{Name: name, Key: name})
	}
	head = append(head, table.Column{Name: "policy", Key: "policy"})
	for _, a := range c.x.memoryAxes() {
		head = append(head, a.column)
	}
	return append(head, otherColumns...)
}

func (c *collection) tableCells() [][]string {
	var all [][]string
	for _, r := range c.rows {
		cells := []string{r.point.Program}
		for _, name := range c.x.argumentNames() {
			cells = append(cells, r.argumentOf(name))
		}
		cells = append(cells, r.point.Policy)
		for _, a := range c.x.memoryAxes() {
			cells = append(cells, a.value(r))
		}
		cells = append(cells, strconv.Itoa(r.point.Cores), orDash(r.point.Threads), strconv.Itoa(r.n))
		if r.n == 0 {
			cells = append(cells, "-", "-", "-", "-", "-", "-")
		} else {
			cells = append(cells, c.speedUp(r), formatMean(r.cycles, r.n), formatMean(r.instr, r.n), formatMean(r.switches, r.n),
				strconv.Itoa(len(r.schedules)), r.matchesNative())
		}
		all = append(all, cells)
	}
	return all
}

func (r *row) argumentOf(name string) string {
	for _, a := range r.point.Arguments {
		if a.Name == name {
			return a.Value
		}
	}
	return "-"
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func formatMean(sum float64, n int) string { return strconv.FormatFloat(sum/float64(n), 'f', 0, 64) }

// speedUp is the virtual time with one thread over the row's own, both means
// over the seeds.
func (c *collection) speedUp(r *row) string {
	base := r.point
	base.Threads = 1
	if base.CoresAs == "threads" {
		base.Cores = 1
	}
	b, ok := c.bySlot[base.storeSlot()]
	if !ok || b.n == 0 || r.point.Threads == 0 || r.cycles == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", b.cycles/float64(b.n)/(r.cycles/float64(r.n)))
}

// matchesNative says whether every run's output and status are the native ones.
func (r *row) matchesNative() string {
	switch {
	case !r.native:
		return "-"
	case r.identical == r.n:
		return "yes"
	}
	return fmt.Sprintf("no (%d of %d)", r.identical, r.n)
}

// tableNotes are the remarks that a reader of the table must know.
func (c *collection) tableNotes() []string {
	notes := []string{"Speed-up and cycles are virtual time: those of the machine's timing model, not of the host. Means over the seeds."}
	if region := c.x.Machine.Region; region != "" {
		notes = append(notes, "They are those of the region "+region+".")
	}
	return append(notes, c.storeNotes()...)
}

// maxNamedFailures is how many failed runs the notes name.
const maxNamedFailures = 20

// storeNotes are those on the runs that are missing from the table, or wrong.
func (c *collection) storeNotes() []string {
	var notes []string
	if missing := c.total - c.found; missing > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d runs are not stored yet: heddle experiment run continues with them.", missing, c.total))
	}
	if c.stale > 0 {
		notes = append(notes, fmt.Sprintf("%d runs are those of an earlier configuration, program, input or heddle: heddle experiment run renews them.", c.stale))
	}
	if len(c.failures) > 0 {
		notes = append(notes, fmt.Sprintf("%d runs FAILED and are left out:", len(c.failures)))
		notes = append(notes, c.failures[:min(len(c.failures), maxNamedFailures)]...)
		if more := len(c.failures) - maxNamedFailures; more > 0 {
			notes = append(notes, fmt.Sprintf("and %d more.", more))
		}
	}
	if c.conflicts > 0 {
		notes = append(notes, fmt.Sprintf("NOT REPEATABLE: %d runs gave another digest than an equal run.", c.conflicts))
	}
	return notes
}

// Describe summarises the experiment in a line.
func (x *Experiment) Describe() string {
	programs := make([]string, len(x.Programs))
	for i, p := range x.Programs {
		programs[i] = p.Name
	}
	return fmt.Sprintf("%s: %d runs of %s", x.path, int(x.Size()), strings.Join(programs, ", "))
}
