package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"

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
			{Name: "reuse rate", Key: "rate", Number: true}, {Name: "paper", Key: "paper_rate", Number: true},
			{Name: "run of them", Key: "tried", Number: true},
			{Name: "followed", Key: "followed", Number: true},
			why,
		},
		Notes: []string{
			"Inputs are drawn at random. Of the first part of them, as large as \"memoized\", those that no schedule admits yet are memoized with TERN's pruning; the reuse rate is the part of all inputs that the cache then has a schedule for. Of these some are run under it; \"followed\" are those that followed it to the output that they have natively.",
			"The paper's own table is not in the text that we have: the text says that rates are over 90 % for three of four workloads, PBZip2-usr among them, and nearly 100 % for the scientific programs after a few runs.",
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

// reuse is a cache that inputs of a workload are tried on.
type reuse struct {
	target *target
	cache  *cache.Cache
	s      *reused
	o      *study.Options
}

// measure memoizes a part of a workload and counts what the rest reuses.
func (w *workload) measure(ctx context.Context, s *reused, o *study.Options, dir string) ([]string, error) {
	schedules, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		return nil, err
	}
	defer schedules.Close()
	r := &reuse{target: &target{name: w.Program, dir: dir}, cache: schedules, s: s, o: o}
	random := rand.New(rand.NewPCG(s.Seed, 5))
	inputs := make([]input, s.Inputs)
	for i := range inputs {
		inputs[i] = w.one(random)
	}
	part := int(math.Ceil(s.Memoized * float64(s.Inputs)))
	for i := range inputs[:part] {
		if err := r.memoize(ctx, &inputs[i]); err != nil {
			return nil, err
		}
		o.Say("  %s: %d of %d looked at for schedules", w.Name, i+1, part)
	}
	hits, tried, followed, err := r.count(ctx, inputs)
	if err != nil {
		return nil, err
	}
	entries, _, err := schedules.Entries("")
	if err != nil {
		return nil, err
	}
	paper := w.Reported["rate"]
	return []string{
		w.Name, fmt.Sprint(s.Inputs), fmt.Sprint(part), fmt.Sprint(len(entries)), fmt.Sprintf("%.1f %%", 100*float64(hits)/float64(s.Inputs)), paper,
		fmt.Sprint(tried), fmt.Sprint(followed), w.Why,
	}, nil
}

// memoize makes a schedule of an input that has none.
func (r *reuse) memoize(ctx context.Context, in *input) error {
	c, err := r.target.config(in, r.s.Cores, r.s.Seed)
	if err != nil {
		return err
	}
	e, _, err := memo.Look(&c, r.cache)
	if err != nil || e != nil {
		return err
	}
	m, err := memoize(ctx, c, r.target.dir, slice.TERN)
	if err != nil {
		return err
	}
	_, err = r.cache.Add(m.File)
	return err
}

// count looks inputs up, and runs some of those that have a schedule.
func (r *reuse) count(ctx context.Context, inputs []input) (hits, tried, followed int, err error) {
	for i := range inputs {
		c, err := r.target.config(&inputs[i], r.s.Cores, r.s.Seed+uint64(i))
		if err != nil {
			return 0, 0, 0, err
		}
		e, _, err := memo.Look(&c, r.cache)
		if err != nil {
			return 0, 0, 0, err
		}
		if e == nil {
			continue
		}
		if hits++; tried == r.s.Followed {
			continue
		}
		why, err := follows(ctx, c, e.File)
		if err != nil {
			return 0, 0, 0, err
		}
		if tried++; why == "" {
			followed++
			continue
		}
		r.o.Say("  %q: %.100s", c.Args[1:], why)
	}
	return hits, tried, followed, nil
}
