package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/statistics"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
)

var errChoice = errs.Define("table-choice",
	"{option} is {found}; allowed: {allowed}",
	"A table or plot was asked for a measure, statistic, parameter or kind that the experiment does not have.",
	"Use a name of the sentence; names of values are those of the experiment file.")

// choiceError is a wrong option of a table or plot, which is a field if a file has it.
type choiceError struct{ option, found, allowed string }

// wrongChoice says what an option is and may be; found is as it is printed, texts with quotation marks.
func wrongChoice(option, found, allowed string) error { return &choiceError{option, found, allowed} }

func (e *choiceError) Error() string { return e.Unwrap().Error() }

func (e *choiceError) Unwrap() error { return errChoice.New(e.option, e.found, e.allowed) }

// asField is the error of an option that the section of a file has.
func asField(section string, err error) error {
	if wrong := new(choiceError); errors.As(err, &wrong) {
		return &job.FieldError{Field: section + "." + wrong.option, Found: wrong.found, Allowed: wrong.allowed}
	}
	return err
}

// measure is a number that each run has.
type measure struct {
	name  string // in options, and in CSV
	title string // in heads and at axes
	unit  string
	whole bool // its values are whole numbers
	of    func(Run, store.Record) float64
}

// builtinMeasures are those of every experiment; others are requestMeasures and the file's values.
var builtinMeasures = []measure{
	{"cycles", "cycles", "cycles", true, func(_ Run, r store.Record) float64 { return float64(r.Report.Cycles()) }},
	{"instructions", "instructions", "instructions", true, func(_ Run, r store.Record) float64 { return float64(r.Report.Result.Instructions) }},
	{"context_switches", "switches", "", true, func(_ Run, r store.Record) float64 { return float64(r.Report.Result.ContextSwitches) }},
	{"turns", "turns", "", true, func(_ Run, r store.Record) float64 { return float64(r.Report.Result.Turns) }},
	{"peak_memory", "memory", "bytes", true, func(_ Run, r store.Record) float64 { return float64(r.Report.Result.PeakMemory) }},
	{"host_seconds", "host time", "s", false, func(_ Run, r store.Record) float64 { return r.Report.Result.HostSeconds }},
}

// usualMeasures is the number of builtinMeasures that a table has unless it names others.
const usualMeasures = 3

// ownMeasures lists the measures that do not come from values.
func (x *Experiment) ownMeasures() []measure {
	list := slices.Clone(builtinMeasures)
	if x.hasServers() {
		list = append(list, requestMeasures...)
	}
	if x.Windows.AreGiven() {
		list = append(list, windowMeasures()...)
	}
	return list
}

// measures lists all measures of the experiment. Those of values have no function.
func (x *Experiment) measures() []measure {
	all := slices.Clone(x.ownMeasures())
	for _, v := range x.Values {
		all = append(all, measure{name: v.Name, title: v.Name, unit: v.Unit})
	}
	return all
}

// withUnit is a measure's title with its unit.
func (m measure) withUnit() string {
	if m.unit == "" || m.unit == m.title {
		return m.title
	}
	return fmt.Sprintf("%s [%s]", m.title, m.unit)
}

// Selection chooses the rows and columns of a table.
type Selection struct {
	// Measures are names of measures: cycles, instructions, context_switches, turns, peak_memory,
	// host_seconds and values. The default is the first three and all values.
	Measures []string `mapstructure:"measures"`
	// Statistics of each measure are columns: mean, median, sd, min, max, q1, q3, ci and median-ci.
	// The default is mean.
	Statistics []string `mapstructure:"statistics"`
	// Confidence is the level of intervals, above 0 and below 1; 0 means 0.95.
	Confidence float64 `mapstructure:"confidence"`
	// Where keeps the rows that meet all conditions, such as "policy=rr,timed" or "threads>=4".
	Where []string `mapstructure:"where"`
	// Base, such as "policy=timed", adds ratios of means to the row with these values that is equal otherwise.
	Base string `mapstructure:"base"`
}

// statistic is a kind of column of a measure.
type statistic struct {
	name   string
	heads  []string // appended to the measure's title
	values func(sample []float64, level float64) []float64
}

func interval(i statistics.Interval) []float64 { return []float64{i.Low, i.High} }

func single(f func([]float64) float64) func([]float64, float64) []float64 {
	return func(sample []float64, _ float64) []float64 { return []float64{f(sample)} }
}

func quantile(p float64) func([]float64, float64) []float64 {
	return func(sample []float64, _ float64) []float64 { return []float64{statistics.Quantile(sample, p)} }
}

var allStatistics = []statistic{
	{"mean", []string{""}, single(statistics.Mean)},
	{"median", []string{"median"}, quantile(0.5)},
	{"sd", []string{"sd"}, single(statistics.Deviation)},
	{"min", []string{"min"}, single(statistics.Min)},
	{"max", []string{"max"}, single(statistics.Max)},
	{"q1", []string{"q1"}, quantile(0.25)},
	{"q3", []string{"q3"}, quantile(0.75)},
	{"ci", []string{"low", "high"}, func(sample []float64, level float64) []float64 {
		return interval(statistics.MeanInterval(sample, level))
	}},
	{"median-ci", []string{"median low", "median high"}, func(sample []float64, level float64) []float64 {
		return interval(statistics.MedianInterval(sample, level))
	}},
}

// view is a checked Selection.
type view struct {
	measures   []int // in Experiment.measures
	statistics []statistic
	level      float64
	where      []condition
	base       []condition
}

// view checks the selection.
func (x *Experiment) view(s Selection) (v view, err error) {
	all := x.measures()
	var names []string
	for i, m := range all {
		names = append(names, m.name)
		if len(s.Measures) == 0 && (i < usualMeasures || m.of == nil || slices.Contains(usualRequestMeasures, m.name)) {
			v.measures = append(v.measures, i)
		}
	}
	for _, name := range s.Measures {
		i := slices.Index(names, name)
		if i < 0 {
			return v, wrongChoice("measure", fmt.Sprintf("%q", name), strings.Join(names, ", "))
		}
		v.measures = append(v.measures, i)
	}
	if len(s.Statistics) == 0 {
		s.Statistics = []string{allStatistics[0].name}
	}
	for _, name := range s.Statistics {
		i := slices.IndexFunc(allStatistics, func(s statistic) bool { return s.name == name })
		if i < 0 {
			return v, wrongChoice("statistic", fmt.Sprintf("%q", name), "mean, median, sd, min, max, q1, q3, ci, median-ci")
		}
		v.statistics = append(v.statistics, allStatistics[i])
	}
	v.level = s.Confidence
	if v.level == 0 {
		v.level = 0.95
	}
	if !(v.level > 0 && v.level < 1) {
		return v, wrongChoice("confidence", fmt.Sprint(s.Confidence), "above 0 and below 1")
	}
	for _, text := range s.Where {
		c, err := x.parseConditions(text, "where")
		if err != nil {
			return v, err
		}
		v.where = append(v.where, c...)
	}
	v.base, err = x.parseConditions(s.Base, "base")
	for _, c := range v.base {
		if err == nil && (c.operator != "=" || len(c.values) != 1) {
			err = wrongChoice("base", fmt.Sprintf("%q", s.Base), "PARAMETER=VALUE with one value")
		}
	}
	return v, err
}

// measureColumns are the columns of the measures of a view.
func (c *collection) measureColumns() (columns []table.Column) {
	all := c.x.measures()
	for _, i := range c.view.measures {
		m := all[i]
		for _, s := range c.view.statistics {
			for _, head := range s.heads {
				columns = append(columns, table.Column{Name: joinWords(m.headTitle(), head), Key: strings.ReplaceAll(strings.Trim(m.name+"_"+head, "_"), " ", "_"), Number: true})
			}
		}
		if len(c.view.base) > 0 {
			for _, head := range c.ratioHeads() {
				columns = append(columns, table.Column{Name: m.title + " " + head, Key: m.name + "_" + strings.ReplaceAll(head, " ", "_"), Number: true})
			}
		}
	}
	return columns
}

// headTitle is the title in the head of a table; the units of built-in measures are known.
func (m measure) headTitle() string {
	if slices.ContainsFunc(builtinMeasures, func(b measure) bool { return b.name == m.name }) {
		return m.title
	}
	return m.withUnit()
}

func joinWords(a, b string) string { return strings.TrimSpace(a + " " + b) }

func (c *collection) ratioHeads() []string {
	if slices.ContainsFunc(c.view.statistics, func(s statistic) bool { return s.name == "ci" }) {
		return []string{"ratio", "ratio low", "ratio high"}
	}
	return []string{"ratio"}
}

// measureCells are the cells of a row under measureColumns.
func (c *collection) measureCells(r *row) (cells []string) {
	all := c.x.measures()
	for _, i := range c.view.measures {
		sample := r.sample(i)
		for _, s := range c.view.statistics {
			for _, v := range s.values(sample, c.view.level) {
				cells = append(cells, all[i].format(v))
			}
		}
		if len(c.view.base) == 0 {
			continue
		}
		ratio, ci := math.NaN(), statistics.Interval{Low: math.NaN(), High: math.NaN()}
		if base := c.baseOf(r, c.view.base); base != nil {
			ratio, ci = statistics.Ratio(sample, base.sample(i), c.view.level)
		}
		for k := range c.ratioHeads() {
			cells = append(cells, formatRatio([]float64{ratio, ci.Low, ci.High}[k]))
		}
	}
	return cells
}

func formatRatio(v float64) string {
	if math.IsNaN(v) {
		return missing
	}
	return fmt.Sprintf("%.3f", v)
}

// missing stands for a number that is missing.
const missing = "-"

// format writes a number of the measure: all digits before the point, and six in all.
func (m measure) format(v float64) string {
	switch {
	case math.IsNaN(v):
		return missing
	case m.whole || math.Abs(v) >= 1e6 && math.Abs(v) < 1e15:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.6g", v)
}

// sample is the measure's numbers of the row's runs; a run without the number has none.
func (r *row) sample(measure int) (numbers []float64) {
	for _, run := range r.runs {
		if v := run[measure]; !math.IsNaN(v) {
			numbers = append(numbers, v)
		}
	}
	return numbers
}

// checkSelection checks the file's choice.
func (x *Experiment) checkSelection() error {
	if _, err := x.view(x.Selection); err != nil {
		return asField("table", err)
	}
	return nil
}
