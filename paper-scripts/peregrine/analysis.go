package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/analyses/races"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// analysisTable is the measurement behind tables 4 and 5 and figure 14: each program is recorded
// once, and its execution sliced in all modes.
var analysisTable = &study.Artefact{Name: "analysis", Title: "What the analyses find", Config: analyses, Plan: planWithSettings(planAnalysis)}

// analysisArtefact is an artefact that is laid out from analysisTable.
func analysisArtefact(name, title string, chart *sheet.Chart, lay func(found []map[string]string, by map[string]*study.ProgramStudy) *table.Table) study.Artefact {
	return study.Artefact{Name: name, Title: title, Of: analysisTable, Chart: chart, Lay: func(o *study.Options, t *table.Table) (*table.Table, error) {
		s, err := o.Settings()
		if err != nil {
			return nil, err
		}
		by := map[string]*study.ProgramStudy{}
		for i := range s.Programs {
			by[s.Programs[i].Name] = &s.Programs[i]
		}
		var found []map[string]string
		for _, row := range study.Cells(t) {
			if by[row["program"]] != nil {
				found = append(found, row)
			}
		}
		return lay(found, by), nil
	}}
}

func planAnalysis(s *study.Settings) (*study.Plan, error) {
	p := &study.Plan{Head: []table.Column{{Name: "program", Key: "program"}}}
	for _, key := range []string{
		"threads", "instructions", "detection", "symbolic", "simplification", "slicing", "branches", "plain", "simplified", "lower", "tern",
		"ratio_plain", "ratio_simplified",
	} {
		p.Head = append(p.Head, table.Column{Name: key, Key: key, Number: true})
	}
	p.Head = append(p.Head, table.Column{Name: "kept for", Key: "reasons"}, table.Column{Name: "remark", Key: "remark"})
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			r, err := subject.Record(ctx, dir, s.Seed)
			if err != nil {
				return nil, err
			}
			a, err := analyseRun(ctx, s, r)
			if err != nil {
				return nil, err
			}
			return append(append([]string{x.Name, fmt.Sprint(subject.Threads)}, a.analysisCells()...), ""), nil
		}))
	}
	return p, nil
}

// analysis has the results of slicing a recorded run, and the processor time that it took.
type analysis struct {
	detection, symbolic, simplification, slicing time.Duration
	// by has the modes' counts.
	by map[slice.Mode]slice.Stats
}

func (a *analysis) analysisCells() []string {
	plain, simplified := a.by[slice.Plain], a.by[slice.Simplified]
	ratio := func(s slice.Stats) string { return fmt.Sprintf("%.4f", float64(s.Sliced)/float64(s.Instructions)) }
	return []string{
		fmt.Sprint(simplified.Instructions), study.Seconds(a.detection), study.Seconds(a.symbolic), study.Seconds(a.simplification),
		study.Seconds(a.slicing), fmt.Sprint(simplified.Branches), fmt.Sprint(plain.KeptBranches), fmt.Sprint(simplified.KeptBranches),
		fmt.Sprint(a.by[slice.Lower].KeptBranches), fmt.Sprint(a.by[slice.TERN].KeptBranches), ratio(plain), ratio(simplified),
		frequentReasons(&simplified),
	}
}

// maxReasons is how many reasons a cell has.
const maxReasons = 3

// frequentReasons are the most frequent ones for which a slice keeps constraints.
func frequentReasons(s *slice.Stats) string {
	var list []slice.Reason
	for r, n := range s.Reasons {
		if n > 0 && slice.Reason(r) != slice.None {
			list = append(list, slice.Reason(r))
		}
	}
	slices.SortStableFunc(list, func(a, b slice.Reason) int { return cmp.Compare(s.Reasons[b], s.Reasons[a]) })
	var texts []string
	for _, r := range list[:min(len(list), maxReasons)] {
		texts = append(texts, fmt.Sprintf("%v %d", r, s.Reasons[r]))
	}
	return strings.Join(texts, ", ")
}

// analyseRun carries the analyses out.
func analyseRun(ctx context.Context, s *study.Settings, r *study.RecordedRun) (a *analysis, err error) {
	a = &analysis{by: map[slice.Mode]slice.Stats{}}
	if a.detection, err = study.ProcessorTimeOf(func() error { return detectRaces(r.Trace()) }); err != nil {
		return nil, err
	}
	made, err := r.Make(ctx, peregrine.Options{Portable: true})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, study.Unmeasurable{Reason: err.Error()}
	}
	var followed *tern.ConcolicRun
	a.symbolic, err = study.ProcessorTimeOf(func() error {
		followed, err = tern.RunConcolic(ctx, r.Trace(), made, tern.Options{})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer followed.Close()
	for _, mode := range []slice.Mode{slice.Simplified, slice.Plain, slice.Lower, slice.TERN} {
		s.Say("  %s: %s slice", r.Program.Name, slice.Modes()[mode])
		o := slice.DefaultOptions()
		o.Mode = mode
		if mode == slice.Simplified {
			err = a.timeSlicing(followed.Input, o)
		} else {
			a.by[mode] = slice.Make(followed.Input, o).Stats
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// detectRaces looks for the races that the order of operations leaves open.
func detectRaces(file string) error {
	r, err := trace.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = racereport.Make(file, r, racereport.Options{Order: races.ScheduleRelative, Benign: racereport.Keep})
	return err
}

// timeSlicing slices with the time of each step.
func (a *analysis) timeSlicing(in *slice.Input, o slice.Options) (err error) {
	var prepared *slice.Slicer
	a.simplification, err = study.ProcessorTimeOf(func() error { prepared = slice.Prepare(in, o); return nil })
	if err != nil {
		return err
	}
	a.slicing, err = study.ProcessorTimeOf(func() error { a.by[o.Mode] = prepared.Slice().Stats; return nil })
	return err
}
