package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// table5Settings is the configuration of table 5.
type table5Settings struct {
	Cores int    `mapstructure:"cores"`
	Seed  uint64 `mapstructure:"seed"`
	// Inputs are drawn for each workload, Memoized is the fraction of them that is
	// memoized, and Followed the number of admitted inputs that are run.
	Inputs    int        `mapstructure:"inputs"`
	Memoized  float64    `mapstructure:"memoized"`
	Followed  int        `mapstructure:"followed"`
	Workloads []workload `mapstructure:"workloads"`
}

// workload is a program with random inputs.
type workload struct {
	Name    string `mapstructure:"name"`
	Program string `mapstructure:"program"`
	// Arguments have {letters} in place of the drawn numbers.
	Arguments string        `mapstructure:"arguments"`
	Draw      []drawnNumber `mapstructure:"draw"`
	// Files, if set, is a folder: Debian's pbzip2 compresses random files of it, TERN's
	// PBZip2-usr. Inputs is their number if it differs from the table's.
	Files  string `mapstructure:"files"`
	Inputs int    `mapstructure:"inputs"`
	// Sound considers data and races, too, as PEREGRINE does; otherwise constraints are
	// chosen by TERN's pruning.
	Sound bool `mapstructure:"sound"`
	// Reported are the paper's reuse rate and number of schedules.
	Reported map[string]string `mapstructure:"reported"`
	Why      string            `mapstructure:"why"`
}

// drawnNumber is a random number: one of Values, or one from Least to Greatest.
type drawnNumber struct {
	Name     string `mapstructure:"name"`
	Values   []int  `mapstructure:"values"`
	Least    int    `mapstructure:"least"`
	Greatest int    `mapstructure:"greatest"`
}

// drawInput draws an input.
func (w *workload) drawInput(r *rand.Rand) targetInput {
	in := targetInput{Arguments: w.Arguments}
	for _, d := range w.Draw {
		n := d.Least
		if len(d.Values) > 0 {
			n = d.Values[r.IntN(len(d.Values))]
		} else {
			n += r.IntN(d.Greatest - d.Least + 1)
		}
		in.Arguments = strings.ReplaceAll(in.Arguments, "{"+d.Name+"}", fmt.Sprint(n))
		if d.Name == "size" {
			in.Size = n
		}
	}
	return in
}

func planTable5(o *study.Options) (*study.Plan, error) {
	s := &table5Settings{Cores: 4, Seed: 1, Inputs: 1000, Memoized: 0.02, Followed: 20}
	file, err := o.Load(s, "cores", "seed", "inputs", "followed")
	if err != nil {
		return nil, err
	}
	if s.Inputs < 1 || s.Memoized <= 0 || s.Memoized > 1 {
		return nil, file.Wrong("inputs", s.Inputs, "at least 1, of which memoized is a part")
	}
	var names []string
	for i := range s.Workloads {
		names = append(names, s.Workloads[i].Name)
		if o.Flags.Changed("inputs") {
			s.Workloads[i].Inputs = 0 // the command line's, for all
		}
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	p := &study.Plan{
		Head: []table.Column{
			{Name: "workload", Key: "workload"},
			{Name: "inputs", Key: "inputs", Number: true},
			{Name: "memoized", Key: "memoized", Number: true},
			{Name: "schedules", Key: "schedules", Number: true},
			{Name: "paper", Key: "paper_schedules", Number: true},
			{Name: "reuse rate", Key: "rate", Number: true},
			{Name: "paper", Key: "paper_rate", Number: true},
			{Name: "run of them", Key: "tried", Number: true},
			{Name: "followed", Key: "followed", Number: true},
			whyColumn,
		},
		Notes: []string{
			"Inputs are drawn at random. Of the part \"memoized\" those that no schedule admits yet are memoized; the reuse rate is the part of all inputs that the cache then has a schedule for. Some of these are run; \"followed\" are those that followed their schedule to the output that they have natively.",
			"The preconditions of scientific programs are by TERN's pruning, those of pbzip2 mind data and races, too. The text of the paper that we have lacks its table: it says that rates are over 90 % for three of four workloads, PBZip2-usr among them, and nearly 100 % for the scientific programs after a few runs; the numbers of PBZip2-usr are the published table's.",
		},
	}
	for _, w := range s.Workloads {
		if wanted(w.Name) {
			p.Rows = append(p.Rows, study.Row{
				Name: w.Name, Key: []any{w, s.Cores, s.Seed, s.Inputs, s.Memoized, s.Followed},
				Measure: study.InFolder(w.Name, len(p.Head), func(ctx context.Context, dir string) ([]string, error) { return w.measureRow(ctx, s, o, dir) }),
			})
		}
	}
	return p, nil
}

// ternWorkload returns the configurations of a workload's runs.
func (w *workload) ternWorkload(s *table5Settings, dir string) (*tern.Workload, error) {
	n := cmp.Or(w.Inputs, s.Inputs)
	if w.Files == "" {
		random := rand.New(rand.NewPCG(s.Seed, 5))
		t := &reuseTarget{name: w.Program, dir: dir}
		list := make([]machine.Config, n)
		for i := range list {
			in := w.drawInput(random)
			c, err := t.runConfig(&in, s.Cores, s.Seed+uint64(i))
			if err != nil {
				return nil, err
			}
			list[i] = c
		}
		return &tern.Workload{Inputs: n, Input: func(i int) machine.Config { return list[i] }, Folder: dir}, nil
	}
	files, err := chooseFiles(w.Files, n, s.Seed)
	if err != nil {
		return nil, err
	}
	base := machine.DefaultConfig()
	base.Dir, base.Cores, base.Seed = "/", s.Cores, s.Seed
	return tern.PBZip2(base, files, dir, strings.Fields(w.Arguments)...), nil
}

// chooseFiles returns random files below a folder.
func chooseFiles(folder string, n int, seed uint64) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	rand.New(rand.NewPCG(seed, 10)).Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	return files[:min(n, len(files))], nil
}

// measureRow memoizes a part of a workload and counts the reuses.
func (w *workload) measureRow(ctx context.Context, s *table5Settings, o *study.Options, dir string) ([]string, error) {
	schedules, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		return nil, err
	}
	defer schedules.Close()
	work, err := w.ternWorkload(s, dir)
	if err != nil {
		return nil, err
	}
	work.Share, work.Seed = s.Memoized, s.Seed
	if !w.Sound {
		work.Options.Mode = slice.TERN
	}
	work.OnSchedule = func(i int, m *tern.Schedule, err error) {
		if err != nil {
			o.Say("  %s: no schedule of input %d: %v", w.Name, i, err)
			return
		}
		o.Say("  %s: schedule of input %d: %d of %d constraints, %d terms", w.Name, i, m.Kept, m.Constraints, m.Terms)
	}
	r, hits, err := work.Measure(ctx, schedules)
	if err != nil {
		return nil, err
	}
	tried, followed, err := w.followHits(ctx, s, o, work, schedules, hits)
	if err != nil {
		return nil, err
	}
	return []string{
		w.Name, fmt.Sprint(r.Inputs), fmt.Sprint(r.Sampled), fmt.Sprint(r.Schedules), cmp.Or(w.Reported["schedules"], "-"),
		fmt.Sprintf("%.1f %%", 100*r.Rate()), w.Reported["rate"], fmt.Sprint(tried), fmt.Sprint(followed), w.Why,
	}, nil
}

// followHits runs some of the inputs that have a schedule, spread over all.
func (w *workload) followHits(ctx context.Context, s *table5Settings, o *study.Options, work *tern.Workload, schedules *cache.Cache, hits []bool) (tried, followed int, err error) {
	find := tern.NewFinder(schedules)
	var admitted []int
	for i, hit := range hits {
		if hit {
			admitted = append(admitted, i)
		}
	}
	n := min(s.Followed, len(admitted))
	for k := range n {
		i := admitted[k*len(admitted)/n]
		c := work.Input(i)
		if isTooLong(&c) {
			continue
		}
		e, err := find.Find(&c)
		if err != nil {
			return 0, 0, err
		}
		why, err := runUnderSchedule(ctx, c, e.File, !w.Sound)
		if err != nil {
			return 0, 0, err
		}
		if tried++; why == "" {
			followed++
			continue
		}
		o.Say("  %q: %.200s", c.Args[1:], why)
	}
	return tried, followed, nil
}

// maxFileBytes is the size of the largest file that is compressed on the machine.
const maxFileBytes = 1 << 20

// isTooLong reports whether a run compresses a file that would take too long.
func isTooLong(c *machine.Config) bool {
	for _, m := range c.Mounts {
		if info, err := os.Stat(m.Host); err == nil && info.Mode().IsRegular() && info.Size() > maxFileBytes {
			return true
		}
	}
	return false
}
