package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/experiments/sweep/statistics"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/job"
)

// row is the stored runs of one point of the grid without its seeds.
type row struct {
	point     Point
	n         int         // runs with a result
	runs      [][]float64 // their measures, in the plan's order
	schedules map[string]bool
	identical int // runs with the output and status of the native one
	native    bool
	failed    int
	fails     failed
}

// Table makes the table of the stored results: a row for each point of the grid that the selection
// keeps, grouped over seeds and repetitions. A field of the selection that is not set is that of the
// experiment file.
func (x *Experiment) Table(o Options, s Selection) (*table.Table, error) {
	if all := s.orElse(x.Selection); x.Failures.isWanted() && (len(all.Measures) > 0 || len(all.Statistics) > 0 || all.Base != "") {
		return nil, errOfFailures.New(x.path)
	}
	c, err := x.collect(o, s)
	if err != nil {
		return nil, err
	}
	if x.Failures.isWanted() {
		return c.failureTable(), nil
	}
	return &table.Table{Head: c.tableHead(), Rows: c.tableCells(), Notes: c.tableNotes()}, nil
}

// orElse fills in the fields that are not set.
func (s Selection) orElse(other Selection) Selection {
	if len(s.Measures) == 0 {
		s.Measures = other.Measures
	}
	if len(s.Statistics) == 0 {
		s.Statistics = other.Statistics
	}
	if len(s.Where) == 0 {
		s.Where = other.Where
	}
	s.Confidence, s.Base = cmp.Or(s.Confidence, other.Confidence), cmp.Or(s.Base, other.Base)
	return s
}

// collect reads the results of the rows that the selection keeps.
func (x *Experiment) collect(o Options, s Selection) (*collection, error) {
	view, err := x.view(s.orElse(x.Selection))
	if err != nil {
		return nil, err
	}
	results, err := store.OpenExisting(x.StorePath(o))
	if err != nil {
		return nil, err
	}
	defer results.Close()
	plan, err := x.Plan(o)
	if err != nil {
		return nil, err
	}
	c := &collection{store: results, x: x, view: view, bySlot: map[string]*row{}, folder: x.failureFolder(o)}
	found, err := c.readRuns(plan)
	if err != nil {
		return nil, err
	}
	var last Run
	var r *row
	for i, run := range plan.Runs {
		if group := run.Point.withoutSeed(); r == nil || !group.equal(last.Point.withoutSeed()) {
			r, last = c.rowOf(group), run
		}
		if x.Failures.First && r.fails.n > 0 {
			continue
		}
		if err := c.addRun(r, run, found[i*x.Repetitions:(i+1)*x.Repetitions]); err != nil {
			return nil, err
		}
	}
	if c.found == 0 {
		return nil, errNothingStored.New(c.total, x.path, x.StorePath(o))
	}
	c.shown = slices.Clone(c.rows)
	c.shown = slices.DeleteFunc(c.shown, func(r *row) bool { return !holdAll(view.where, r.point) })
	if len(c.shown) == 0 {
		return nil, errNoRows.New(strings.Join(s.orElse(x.Selection).Where, " "))
	}
	if !slices.ContainsFunc(c.rows, func(r *row) bool { return holdAll(view.base, r.point) }) {
		return nil, wrongChoice("base", strconv.Quote(s.orElse(x.Selection).Base), "a value that a row of the table has")
	}
	return c, nil
}

// equal compares points.
func (p Point) equal(q Point) bool {
	if !slices.Equal(p.Arguments, q.Arguments) {
		return false
	}
	return p.Program == q.Program && p.Policy == q.Policy && p.CoresAs == q.CoresAs && p.Cores == q.Cores &&
		p.Memory == q.Memory && p.Threads == q.Threads && p.Seed == q.Seed
}

// collection gathers rows in the plan's order.
type collection struct {
	store            *store.Store
	x                *Experiment
	view             view
	rows, shown      []*row
	bySlot           map[string]*row
	folder           string // of the shortest failing runs
	total, found     int
	stale, conflicts int
	failures         []string // the runs without a result, with their sentences
	natives          map[string]store.Native
	differing        map[string]bool // keys of conflicts
	unparsed         map[string]int  // runs without a value, by its name
}

// result is a stored run as far as tables need it.
type result struct {
	stored, stale bool
	failure       string
	measures      []float64
	outcome       string
	exit          int
	digest        string
	schedule      string
	class         string
	hasNative     bool
	identical     bool
}

// readRuns reads the store, and returns the results by the numbers of the runs less 1.
func (c *collection) readRuns(plan *Plan) (found []result, err error) {
	if c.natives, err = c.store.Natives(); err != nil {
		return nil, err
	}
	if c.differing, err = c.store.Conflicts(); err != nil {
		return nil, err
	}
	parser, err := c.newParser()
	if err != nil {
		return nil, err
	}
	places := plan.places()
	found = make([]result, len(plan.Runs)*c.x.Repetitions)
	for record, err := range c.store.Runs() {
		i, planned := places[record.Slot]
		if !planned || record.Repetition > c.x.Repetitions {
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		r := c.resultOf(plan.Runs[i], record)
		if r.measures != nil {
			if err := parser.addValues(r.measures, record.Report); err != nil {
				return nil, err
			}
		}
		found[i*c.x.Repetitions+record.Repetition-1] = r
	}
	return found, nil
}

// resultOf extracts a result.
func (c *collection) resultOf(run Run, record store.Record) result {
	r := result{stored: true, stale: record.Key != run.Key, failure: record.Failure}
	end := record.Report.Result
	if record.Failure != "" || end == nil {
		return r
	}
	native, ok := c.natives[run.NativeKey]
	r.hasNative = ok && run.hasNative(c.x) && native.Failure == ""
	r.identical = r.hasNative && record.Report.PrintsAs(&native) && end.ExitCode == native.ExitCode
	r.outcome, r.exit, r.digest = end.Outcome.String(), end.ExitCode, end.Digest
	r.schedule, r.class = end.ScheduleDigest, classOf(record, native, r.hasNative)
	own := c.x.ownMeasures()
	r.measures = make([]float64, len(own)+len(c.x.Values))
	for i, m := range own {
		r.measures[i] = m.of(run, record)
	}
	return r
}

// addRun adds a run's results to its row.
func (c *collection) addRun(r *row, run Run, results []result) error {
	if c.differing[run.Key] {
		c.conflicts++
	}
	for _, result := range results {
		c.total++
		if result.stored {
			c.countRun(r, run, result)
		}
	}
	if c.x.Failures.Minimize == 0 {
		return nil
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

func (c *collection) countRun(r *row, run Run, result result) {
	c.found++
	if result.stale {
		c.stale++
	}
	if result.measures == nil {
		c.failures = append(c.failures, run.Point.String()+": "+result.failure)
		r.failed++
		return
	}
	r.n++
	r.runs = append(r.runs, result.measures)
	r.schedules[result.schedule] = true
	if result.class != "" {
		r.fails.countFailure(result.class, run.Point.Seed)
	}
	r.native = r.native || result.hasNative
	if result.identical {
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
	}
	lastColumns = []table.Column{
		{Name: "schedules", Key: "distinct_schedules", Number: true},
		{Name: "as native", Key: "identical_to_native"},
	}
)

// argumentNames lists the names of all arguments and scheduling options of the experiment, sorted.
func (x *Experiment) argumentNames() []string {
	names := slices.Collect(maps.Keys(x.Grid.Arguments))
	for _, p := range x.Programs {
		names = slices.AppendSeq(names, maps.Keys(x.schedulingOf(p)))
	}
	slices.Sort(names)
	return slices.Compact(names)
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
	head = append(append(head, otherColumns...), c.measureColumns()...)
	return append(head, lastColumns...)
}

func (c *collection) tableCells() [][]string {
	var all [][]string
	for _, r := range c.shown {
		cells := []string{r.point.Program}
		for _, name := range c.x.argumentNames() {
			cells = append(cells, r.point.argument(name))
		}
		cells = append(cells, r.point.Policy)
		for _, a := range c.x.memoryAxes() {
			cells = append(cells, a.value(r))
		}
		cells = append(cells, strconv.Itoa(r.point.Cores), orDash(r.point.Threads), strconv.Itoa(r.n))
		if r.n == 0 {
			for range len(c.measureColumns()) + len(lastColumns) + 1 {
				cells = append(cells, missing)
			}
		} else {
			cells = append(append(cells, c.speedUpCell(r)), c.measureCells(r)...)
			cells = append(cells, strconv.Itoa(len(r.schedules)), r.matchesNative())
		}
		all = append(all, cells)
	}
	return all
}

func orDash(n int) string {
	if n == 0 {
		return missing
	}
	return strconv.Itoa(n)
}

// baseOf returns the row that differs from another in the conditions' values alone, or nil.
func (c *collection) baseOf(r *row, base []condition) *row {
	at := r.point
	for _, b := range base {
		b.parameter.set(&at, b.values[0])
	}
	return c.bySlot[at.storeSlot()]
}

// speedUp is the virtual time with one thread over the row's own, both means over the seeds; NaN
// without one of them.
func (c *collection) speedUp(r *row) float64 {
	base := r.point
	base.Threads = 1
	if base.CoresAs == "threads" {
		base.Cores = 1
	}
	b, ok := c.bySlot[base.storeSlot()]
	if !ok || r.point.Threads == 0 {
		return math.NaN()
	}
	ratio, _ := statistics.Ratio(b.sample(measureCycles), r.sample(measureCycles), 0.95)
	return ratio
}

// measureCycles is the place of the cycles in builtinMeasures.
const measureCycles = 0

func (c *collection) speedUpCell(r *row) string {
	if v := c.speedUp(r); !math.IsNaN(v) {
		return fmt.Sprintf("%.2f", v)
	}
	return missing
}

// matchesNative says whether every run's output and status are the native ones.
func (r *row) matchesNative() string {
	switch {
	case !r.native:
		return missing
	case r.identical == r.n:
		return "yes"
	}
	return fmt.Sprintf("no (%d of %d)", r.identical, r.n)
}

// tableNotes are the remarks that a reader of the table must know.
func (c *collection) tableNotes() []string {
	notes := []string{"Speed-up and cycles are virtual time: those of the machine's timing model, not of the host. Means over the seeds."}
	if slices.ContainsFunc(c.view.statistics, func(s statistic) bool { return len(s.heads) > 1 }) {
		notes = append(notes, fmt.Sprintf("Low and high are the ends of %.4g %% confidence intervals over the seeds.", 100*c.view.level))
	}
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
	for _, v := range c.x.Values {
		if n := c.unparsed[v.Name]; n > 0 {
			notes = append(notes, fmt.Sprintf("%d runs have no %s: the pattern does not match their %s, or that is longer than %d MiB or was not kept (heddle experiment run carries those out again).", n, v.Name, v.From, job.MaxKept>>20))
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
