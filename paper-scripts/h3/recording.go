package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/clap"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// recordedRun is a run with branch traces.
type recordedRun struct {
	file   string
	result *machine.Result
	// mhz is the clock of the timing model.
	mhz uint32
}

// recordRun records a run of a program. A run that does not end well is unfit.
func recordRun(ctx context.Context, s *study.Subject, dir string, seed uint64) (*recordedRun, error) {
	r := &recordedRun{file: filepath.Join(dir, fmt.Sprintf("run%d.trace", seed))}
	f, err := os.Create(r.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := s.Config(seed)
	c.Sched, c.MaxInstructions = s.Sched, 2e9
	c.Record, r.mhz = &machine.Record{To: f, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}, c.Costs.MHz
	_, r.result, err = study.Run(ctx, c)
	if err == nil && (r.result.Outcome != "exit" || r.result.ExitCode != 0) {
		err = study.Unmeasurable{Reason: fmt.Sprintf("the run ended with %s, status %d", r.result.Outcome, r.result.ExitCode)}
	}
	return r, err
}

// milliseconds are cycles in virtual time.
func (r *recordedRun) milliseconds(cycles float64) float64 { return cycles / float64(r.mhz) / 1000 }

// table1 is the cost of branch traces; figure 6 is drawn from it.
var table1 = &study.Artefact{
	Name: "table1", Title: "Table 1: what branch traces take", Config: "configs/h3/parsec.yaml", Plan: study.PlanWithSettings(table1Plan),
	Pairs: millisecondPairs,
}

// millisecondPairs are times of ours in milliseconds beside the paper's in seconds.
var millisecondPairs = []sheet.Pair{{Ours: "native", Paper: "paper_native", Scale: 0.001}, {Ours: "recorded", Paper: "paper_recorded", Scale: 0.001}}

func table1Plan(s *study.Settings) (*study.Plan, error) {
	head := append([]table.Column{{Name: "program", Key: "program"}, {Name: "stands for", Key: "stands"}}, study.WithPaperColumns(
		table.Column{Name: "native, ms", Key: "native"}, table.Column{Name: "recorded, ms", Key: "recorded"},
		table.Column{Name: "overhead, %", Key: "overhead"}, table.Column{Name: "trace, bytes", Key: "size"},
	)...)
	for _, c := range []table.Column{
		{Name: "stored, bytes", Key: "stored"},
		{Name: "instructions", Key: "instructions"},
		{Name: "branches", Key: "branches"},
		{Name: "branches, %", Key: "share"},
		{Name: "bits per instruction", Key: "bits"},
	} {
		c.Number = true
		head = append(head, c)
	}
	p := &study.Plan{Head: append(head, table.Column{Name: "remark", Key: "remark"}), Notes: []string{
		"Times are virtual, those of the paper in seconds; recording is priced by the timing model: pt_byte for each byte, of the core that writes most.",
	}}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return table1Row(ctx, s, &x, subject, dir)
		}))
	}
	return p, nil
}

func table1Row(ctx context.Context, s *study.Settings, x *study.ProgramStudy, subject *study.Subject, dir string) ([]string, error) {
	r, err := recordRun(ctx, subject, dir, s.Seed)
	if err != nil {
		return nil, err
	}
	cost, err := branchTraceCost(r.file)
	if err != nil {
		return nil, err
	}
	n, err := clap.CountBranches(r.file)
	if err != nil {
		return nil, err
	}
	native := r.milliseconds(float64(r.result.Cycles))
	ours := []string{
		fmt.Sprintf("%.3f", native), fmt.Sprintf("%.3f", native*(1+cost.Overhead)), fmt.Sprintf("%.1f", 100*cost.Overhead), fmt.Sprint(cost.Bytes),
	}
	cells := []string{x.Name, cmp.Or(x.Paper, "-")}
	for i, key := range []string{"native", "recorded", "overhead", "size"} {
		cells = append(cells, ours[i], x.PaperValue(key))
	}
	return append(cells, fmt.Sprint(cost.Stored), fmt.Sprint(n.Instructions), fmt.Sprint(n.Branches),
		fmt.Sprintf("%.1f", 100*float64(n.Branches)/float64(n.Instructions)),
		fmt.Sprintf("%.2f", 8*float64(cost.Bytes)/float64(n.Instructions)), ""), nil
}

// figure6Artefact is a part of figure 6, laid out from table 1.
func figure6Artefact(part, title string, chart *sheet.Chart) study.Artefact {
	return study.Artefact{
		Name: "figure6" + part, Title: "Figure 6(" + part + "): " + title, Of: table1,
		Chart: chart, Pairs: millisecondPairs,
		Lay: func(_ *study.Options, t *table.Table) (*table.Table, error) {
			out := &table.Table{Head: []table.Column{{Name: "program", Key: "program"}}}
			keys := []string{chart.Over, "paper_" + chart.Over, chart.Columns[0], "paper_" + chart.Columns[0]}
			keys = slices.DeleteFunc(keys, func(key string) bool { return t.Find(key) < 0 })
			for _, key := range keys {
				for _, c := range t.Head {
					if c.Key == key {
						out.Head = append(out.Head, c)
					}
				}
			}
			for _, row := range study.Cells(t) {
				if row["remark"] == "" {
					cells := []string{row["program"]}
					for _, key := range keys {
						cells = append(cells, row[key])
					}
					out.Rows = append(out.Rows, cells)
				}
			}
			return out, nil
		},
	}
}

// table3 compares CLAP's recording with H3's.
var table3 = study.Artefact{
	Name: "table3", Title: "Table 3: recording, CLAP and H3", Config: "configs/h3/recording.yaml", Plan: study.PlanWithSettings(table3Plan, "times"),
}

func table3Plan(s *study.Settings) (*study.Plan, error) {
	head := append([]table.Column{{Name: "program", Key: "program"}, {Name: "stands for", Key: "stands"}, {Name: "native, ms", Key: "native", Number: true}},
		study.WithPaperColumns(
			table.Column{Name: "CLAP, %", Key: "clap"}, table.Column{Name: "H3, %", Key: "h3"}, table.Column{Name: "H3 faster, %", Key: "speedup"},
			table.Column{Name: "branches, %", Key: "branches"}, table.Column{Name: "CLAP, bytes", Key: "clap_space"}, table.Column{Name: "H3, bytes", Key: "h3_space"},
		)...)
	for _, c := range []table.Column{
		{Name: "CLAP stored", Key: "clap_stored"},
		{Name: "H3 stored", Key: "h3_stored"},
		{Name: "own code, %", Key: "own"},
		{Name: "CLAP of all code, %", Key: "whole"},
		{Name: "its bytes", Key: "whole_space"},
		{Name: "stored", Key: "whole_stored"},
	} {
		c.Number = true
		head = append(head, c)
	}
	p := &study.Plan{Head: append(head, table.Column{Name: "remark", Key: "remark"}), Notes: []string{
		"Overheads are by the timing model, of the core that records most: for CLAP path_increment, path_write and pt_byte, for H3 pt_byte. As in the paper",
		"CLAP records the program's own code alone, and H3 all; \"own code\" is how much of the instructions that is. Bytes are means, as are overheads.",
	}}
	for _, x := range s.Programs {
		p.Rows = append(p.Rows, s.Row(x, len(p.Head), func(ctx context.Context, subject *study.Subject, dir string) ([]string, error) {
			return table3Row(ctx, s, &x, subject, dir)
		}, s.Times))
	}
	return p, nil
}

// runMeans adds numbers up by name.
type runMeans map[string]float64

func table3Row(ctx context.Context, s *study.Settings, x *study.ProgramStudy, subject *study.Subject, dir string) ([]string, error) {
	sum := runMeans{}
	for i := range s.Times {
		r, err := recordRun(ctx, subject, dir, s.Seed+uint64(i))
		if err != nil {
			return nil, err
		}
		if err := sum.addRun(r, float64(s.Times)); err != nil {
			return nil, err
		}
		if err := os.Remove(r.file); err != nil {
			return nil, err
		}
	}
	percent := func(key string) string { return fmt.Sprintf("%.1f", 100*sum[key]) }
	whole := func(key string) string { return fmt.Sprintf("%.0f", sum[key]) }
	sum["speedup"] = (sum["clap"] - sum["h3"]) / (1 + sum["clap"])
	cells := []string{x.Name, x.Paper, fmt.Sprintf("%.3f", sum["native"])}
	for _, key := range []string{"clap", "h3", "speedup", "branches"} {
		cells = append(cells, percent(key), x.PaperValue(key))
	}
	for _, key := range []string{"clap_space", "h3_space"} {
		cells = append(cells, whole(key), x.PaperValue(key))
	}
	return append(cells, whole("clap_stored"), whole("h3_stored"), percent("own"), percent("whole"), whole("whole_space"), whole("whole_stored"), ""), nil
}

// addRun adds a run, with the weight of one of runs.
func (sum runMeans) addRun(r *recordedRun, runs float64) error {
	h3, err := branchTraceCost(r.file)
	if err != nil {
		return err
	}
	sum["native"] += r.milliseconds(float64(r.result.Cycles)) / runs
	sum.addCost("h3", h3, runs)
	for _, how := range []string{"clap", "whole"} {
		rec, err := clap.Record(r.file, "/", how == "whole")
		if err != nil {
			return err
		}
		cost, err := pathsCost(r.file, rec)
		if err != nil {
			return err
		}
		sum.addCost(how, cost, runs)
		if how == "clap" {
			sum["branches"] += float64(rec.Branches) / float64(rec.Instructions) / runs
			sum["own"] += float64(rec.InstrumentedInstructions) / float64(rec.Instructions) / runs
		}
	}
	return nil
}

func (sum runMeans) addCost(name string, c clap.Cost, runs float64) {
	sum[name] += c.Overhead / runs
	sum[name+"_space"] += float64(c.Bytes) / runs
	sum[name+"_stored"] += float64(c.Stored) / runs
}

// pathsCost writes the paths of a recorded run beside its trace.
func pathsCost(file string, rec *clap.Recording) (clap.Cost, error) {
	t, err := trace.Open(file)
	if err != nil {
		return clap.Cost{}, err
	}
	defer t.Close()
	cycles, err := clap.Cycles(t)
	if err != nil {
		return clap.Cost{}, err
	}
	to, err := os.Create(file + ".paths")
	if err != nil {
		return clap.Cost{}, err
	}
	cost, err := rec.Cost(to, clap.CostTable(t), cycles)
	if err == nil {
		err = to.Close()
	}
	if err == nil {
		err = os.Remove(to.Name())
	}
	return cost, err
}

// branchTraceCost is the cost of a recorded run's branch traces.
func branchTraceCost(file string) (clap.Cost, error) {
	t, err := trace.Open(file)
	if err != nil {
		return clap.Cost{}, err
	}
	defer t.Close()
	return clap.BranchTraceCost(t)
}
