package memo

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/cache"
)

// Workload is many inputs of one program, to find out how often schedules are reused
// (TERN, section 8.2.2): some inputs, chosen at random, go to the memoizer; then all are
// looked for in the cache.
type Workload struct {
	// Inputs is how many there are, and Input one of them.
	Inputs int
	Input  func(i int) heddle.Config
	// Stand, if set, gives the run that is recorded for an input, and what cleans up
	// behind it: one of the same size that takes less time, for preconditions that
	// do not look at what is in files. Without a function that cleans up there is none:
	// no schedule is made of the input. Nil: the input itself.
	Stand func(i int) (c heddle.Config, clean func(), err error)
	// Share is which part of the inputs is memoized, 0.01 to 0.03 in the paper, and
	// Seed chooses which.
	Share float64
	Seed  uint64
	// Folder has traces while schedules are made.
	Folder  string
	Options Options
	// Made, if set, is told of each schedule, or why there is none.
	Made func(i int, m *Made, err error)
}

// Reuse is what a Workload comes to.
type Reuse struct {
	// Inputs are all. Of the Sampled ones the Recorded were those that no schedule
	// admitted, and of the Refused of them none could be made.
	Inputs, Sampled, Recorded, Refused int
	// Schedules are in the cache at the end, and admit the Hits.
	Schedules, Hits int
}

// Rate is the overall reuse rate: hits of all inputs (TERN, table 5).
func (r *Reuse) Rate() float64 { return float64(r.Hits) / float64(max(r.Inputs, 1)) }

// Measure memoizes a part of a workload into a cache, and tells which inputs are hits.
func (w *Workload) Measure(ctx context.Context, to *cache.Cache) (*Reuse, []bool, error) {
	r := &Reuse{Inputs: w.Inputs}
	find := NewFinder(to)
	sample := rand.New(rand.NewPCG(w.Seed, 0)).Perm(w.Inputs)[:int(w.Share*float64(w.Inputs))]
	for _, i := range sample {
		r.Sampled++
		if err := w.populate(ctx, i, find, r); err != nil {
			return nil, nil, err
		}
	}
	hits := make([]bool, w.Inputs)
	used := map[string]bool{}
	for i := range hits {
		c := w.Input(i)
		e, err := find.Find(&c)
		if err != nil {
			return nil, nil, err
		}
		if e != nil {
			hits[i], used[e.Name] = true, true
			r.Hits++
		}
	}
	r.Schedules = len(used)
	return r, hits, ctx.Err()
}

// populate memoizes an input if no schedule admits it.
func (w *Workload) populate(ctx context.Context, i int, find *Finder, r *Reuse) error {
	c := w.Input(i)
	if e, err := find.Find(&c); e != nil || err != nil {
		return err
	}
	r.Recorded++
	if w.Stand != nil {
		stand, clean, err := w.Stand(i)
		if err != nil {
			return err
		}
		if clean == nil {
			r.Refused++
			return nil
		}
		defer clean()
		c = stand
	}
	m, err := w.memoize(ctx, c)
	if w.Made != nil {
		w.Made(i, m, err)
	}
	if err != nil {
		r.Refused++
		return ctx.Err()
	}
	_, err = find.from.Add(m.File)
	find.Forget()
	return err
}

// memoize makes the schedule of a run.
func (w *Workload) memoize(ctx context.Context, c heddle.Config) (*Made, error) {
	file, err := os.CreateTemp(w.Folder, "memoize-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	Harmless(&c)
	if _, err := Record(ctx, c, file); err != nil {
		return nil, err
	}
	return Make(ctx, file.Name(), w.Options)
}

// longest is the size of the largest file that PBZip2 has recorded: the symbols of its
// bytes, and their copies, take a hundred bytes each.
const longest = 16 << 20

// inputName is where the guest has the file that it compresses.
const inputName = "/input"

// PBZip2 is TERN's workload PBZip2-usr: pbzip2, with some arguments, compresses files,
// each under the same name. What is recorded for a file is one of zeros as long as it,
// which takes a tenth of the time. The folder has it meanwhile.
func PBZip2(base heddle.Config, files []string, folder string, arguments ...string) *Workload {
	w := &Workload{Inputs: len(files), Share: 0.02, Seed: 1, Folder: folder}
	under := func(host string) heddle.Config {
		c := base
		c.Args = slices.Concat([]string{"pbzip2", "-c", "-k"}, arguments, []string{inputName})
		c.Mounts = append(slices.Clone(base.Mounts), heddle.Mount{Host: host, Guest: inputName})
		return c
	}
	w.Input = func(i int) heddle.Config { return under(files[i]) }
	w.Stand = func(i int) (heddle.Config, func(), error) {
		info, err := os.Stat(files[i])
		if err != nil {
			return heddle.Config{}, nil, err
		}
		if info.Size() > longest {
			return heddle.Config{}, nil, nil
		}
		file, err := os.CreateTemp(folder, "zeros-")
		if err != nil {
			return heddle.Config{}, nil, err
		}
		clean := func() { _ = os.Remove(file.Name()) }
		if err := file.Truncate(info.Size()); err != nil {
			clean()
			return heddle.Config{}, nil, err
		}
		return under(file.Name()), clean, file.Close()
	}
	return w
}
