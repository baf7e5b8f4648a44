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

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/experiments/cache"
	"github.com/heddle-dmt/heddle/experiments/memo"
	"github.com/heddle-dmt/heddle/experiments/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// reused is the configuration of table 5.
type reused struct {
	Cores int    `mapstructure:"cores"`
	Seed  uint64 `mapstructure:"seed"`
	// Inputs are drawn for each workload, Memoized is the part of them that schedules
	// are made of, and Followed how many of those that a schedule admits are run.
	Inputs    int        `mapstructure:"inputs"`
	Memoized  float64    `mapstructure:"memoized"`
	Followed  int        `mapstructure:"followed"`
	Workloads []workload `mapstructure:"workloads"`
}

// workload is inputs of a program that are drawn at random.
type workload struct {
	Name    string `mapstructure:"name"`
	Program string `mapstructure:"program"`
	// Arguments have {letters} in place of what is drawn.
	Arguments string `mapstructure:"arguments"`
	Draw      []draw `mapstructure:"draw"`
	// Files, if set, is the folder whose files Debian's pbzip2 compresses, chosen at
	// random: TERN's PBZip2-usr. Inputs are so many instead of the table's.
	Files  string `mapstructure:"files"`
	Inputs int    `mapstructure:"inputs"`
	// Sound minds data and races, too, as PEREGRINE does; otherwise TERN's pruning
	// says what matters.
	Sound bool `mapstructure:"sound"`
	// Reported are the paper's reuse rate, and number of schedules.
	Reported map[string]string `mapstructure:"reported"`
	Why      string            `mapstructure:"why"`
}

// draw is a number that is drawn: one of Values, or of those from Least to Greatest.
type draw struct {
	Name     string `mapstructure:"name"`
	Values   []int  `mapstructure:"values"`
	Least    int    `mapstructure:"least"`
	Greatest int    `mapstructure:"greatest"`
}

// one draws an input.
func (w *workload) one(r *rand.Rand) input {
	in := input{Arguments: w.Arguments}
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

func table5(o *study.Options) (*study.Plan, error) {
	s := &reused{Cores: 4, Seed: 1, Inputs: 1000, Memoized: 0.02, Followed: 20}
	file, err := o.Load(s, "cores", "seed", "inputs", "followed")
	if err != nil {
		return nil, err
	}
	if s.Inputs < 1 || s.Memoized <= 0 || s.Memoized > 1 {
		return nil, file.Wrong("inputs", s.Inputs, "at least 1, of which memoized is a part")
	}
	var names []string
	for _, w := range s.Workloads {
		names = append(names, w.Name)
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
			why,
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
				Measure: study.InFolder(w.Name, len(p.Head), func(ctx context.Context, dir string) ([]string, error) { return w.measure(ctx, s, o, dir) }),
			})
		}
	}
	return p, nil
}

// inputs are the configurations of a workload's runs.
func (w *workload) inputs(s *reused, dir string) (*memo.Workload, error) {
	n := cmp.Or(w.Inputs, s.Inputs)
	if w.Files == "" {
		random := rand.New(rand.NewPCG(s.Seed, 5))
		t := &target{name: w.Program, dir: dir}
		list := make([]heddle.Config, n)
		for i := range list {
			in := w.one(random)
			c, err := t.config(&in, s.Cores, s.Seed+uint64(i))
			if err != nil {
				return nil, err
			}
			list[i] = c
		}
		return &memo.Workload{Inputs: n, Input: func(i int) heddle.Config { return list[i] }, Folder: dir}, nil
	}
	files, err := chosen(w.Files, n, s.Seed)
	if err != nil {
		return nil, err
	}
	base := heddle.DefaultConfig()
	base.Dir, base.Cores, base.Seed = "/", s.Cores, s.Seed
	return memo.PBZip2(base, files, dir, strings.Fields(w.Arguments)...), nil
}

// chosen are files below a folder, chosen at random.
func chosen(folder string, n int, seed uint64) ([]string, error) {
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

// measure memoizes a part of a workload and counts what all of it reuses.
func (w *workload) measure(ctx context.Context, s *reused, o *study.Options, dir string) ([]string, error) {
	schedules, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		return nil, err
	}
	defer schedules.Close()
	work, err := w.inputs(s, dir)
	if err != nil {
		return nil, err
	}
	work.Share, work.Seed = s.Memoized, s.Seed
	if !w.Sound {
		work.Options.Mode = slice.TERN
	}
	work.Made = func(i int, m *memo.Made, err error) {
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
	tried, followed, err := w.follow(ctx, s, o, work, schedules, hits)
	if err != nil {
		return nil, err
	}
	return []string{
		w.Name, fmt.Sprint(r.Inputs), fmt.Sprint(r.Sampled), fmt.Sprint(r.Schedules), cmp.Or(w.Reported["schedules"], "-"),
		fmt.Sprintf("%.1f %%", 100*r.Rate()), w.Reported["rate"], fmt.Sprint(tried), fmt.Sprint(followed), w.Why,
	}, nil
}

// follow runs some of the inputs that have a schedule, spread over all.
func (w *workload) follow(ctx context.Context, s *reused, o *study.Options, work *memo.Workload, schedules *cache.Cache, hits []bool) (tried, followed int, err error) {
	find := memo.NewFinder(schedules)
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
		if long(&c) {
			continue
		}
		e, err := find.Find(&c)
		if err != nil {
			return 0, 0, err
		}
		why, err := follows(ctx, c, e.File, !w.Sound)
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

// longest is how many bytes a file has at most that is compressed on the machine.
const longest = 1 << 20

// long tells whether a run is of a file that would take too long.
func long(c *heddle.Config) bool {
	for _, m := range c.Mounts {
		if info, err := os.Stat(m.Host); err == nil && info.Mode().IsRegular() && info.Size() > longest {
			return true
		}
	}
	return false
}
