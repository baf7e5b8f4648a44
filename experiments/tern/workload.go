package tern

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Workload is many inputs of one program, for measuring how often schedules are reused
// (TERN, section 8.2.2): some inputs, chosen at random, go to the memoizer; then all are
// looked up in the cache.
type Workload struct {
	// Inputs is the number of inputs, Input returns one of them.
	Inputs int
	Input  func(i int) machine.Config
	// StandIn, if set, returns a run that is recorded in place of an input, and a function
	// that cleans up: a run of the same size that takes less time, for preconditions that
	// are not about file contents. If the function is nil the input has no stand-in, and no
	// schedule is made of it. A nil StandIn records the input itself.
	StandIn func(i int) (c machine.Config, clean func(), err error)
	// Share is the fraction of the inputs that is memoized, 0.01 to 0.03 in the paper, and
	// Seed chooses the inputs.
	Share float64
	Seed  uint64
	// Folder holds traces while schedules are made.
	Folder  string
	Options Options
	// OnSchedule, if set, is called with each schedule, or with the error.
	OnSchedule func(i int, m *Schedule, err error)
}

// Reuse is the result of measuring a Workload.
type Reuse struct {
	// Inputs counts all inputs. Of the Sampled ones, Recorded were admitted by no schedule,
	// and for the Refused of these no schedule could be made.
	Inputs, Sampled, Recorded, Refused int
	// Schedules is the number of schedules in the cache at the end that admit an input,
	// Hits the number of admitted inputs.
	Schedules, Hits int
}

// Rate is the overall reuse rate: hits over inputs (TERN, table 5).
func (r *Reuse) Rate() float64 { return float64(r.Hits) / float64(max(r.Inputs, 1)) }

// Measure memoizes a part of a workload into a cache, and returns which inputs are hits.
func (w *Workload) Measure(ctx context.Context, to *cache.Cache) (*Reuse, []bool, error) {
	r := &Reuse{Inputs: w.Inputs}
	find := NewFinder(to)
	sample := rand.New(rand.NewPCG(w.Seed, 0)).Perm(w.Inputs)[:int(w.Share*float64(w.Inputs))]
	for _, i := range sample {
		r.Sampled++
		if err := w.memoizeMiss(ctx, i, find, r); err != nil {
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

// memoizeMiss memoizes an input if no schedule admits it.
func (w *Workload) memoizeMiss(ctx context.Context, i int, find *Finder, r *Reuse) error {
	c := w.Input(i)
	if e, err := find.Find(&c); e != nil || err != nil {
		return err
	}
	r.Recorded++
	if w.StandIn != nil {
		stand, clean, err := w.StandIn(i)
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
	m, err := w.memoizeRun(ctx, c)
	if w.OnSchedule != nil {
		w.OnSchedule(i, m, err)
	}
	if err != nil {
		r.Refused++
		return ctx.Err()
	}
	_, err = find.from.Add(m.File)
	find.Reload()
	return err
}

// memoizeRun makes the schedule of a run.
func (w *Workload) memoizeRun(ctx context.Context, c machine.Config) (*Schedule, error) {
	file, err := os.CreateTemp(w.Folder, "memoize-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	MakeReadOnly(&c)
	if _, err := Record(ctx, c, file); err != nil {
		return nil, err
	}
	return Make(ctx, file.Name(), w.Options)
}

// maxRecordedBytes is the size of the largest file that PBZip2 records: the symbols of its
// bytes, and their copies, take a hundred bytes each.
const maxRecordedBytes = 16 << 20

// inputName is the guest's path of the compressed file.
const inputName = "/input"

// PBZip2 is TERN's workload PBZip2-usr: pbzip2, with some arguments, compresses files, each
// under the same name. The stand-in of a file is a file of zeros of the same size in the
// folder, which takes a tenth of the time.
func PBZip2(base machine.Config, files []string, folder string, arguments ...string) *Workload {
	w := &Workload{Inputs: len(files), Share: 0.02, Seed: 1, Folder: folder}
	under := func(host string) machine.Config {
		c := base
		c.Args = slices.Concat([]string{"pbzip2", "-c", "-k"}, arguments, []string{inputName})
		c.Mounts = append(slices.Clone(base.Mounts), machine.Mount{Host: host, Guest: inputName})
		return c
	}
	w.Input = func(i int) machine.Config { return under(files[i]) }
	w.StandIn = func(i int) (machine.Config, func(), error) {
		info, err := os.Stat(files[i])
		if err != nil {
			return machine.Config{}, nil, err
		}
		if info.Size() > maxRecordedBytes {
			return machine.Config{}, nil, nil
		}
		file, err := os.CreateTemp(folder, "zeros-")
		if err != nil {
			return machine.Config{}, nil, err
		}
		clean := func() { _ = os.Remove(file.Name()) }
		if err := file.Truncate(info.Size()); err != nil {
			clean()
			return machine.Config{}, nil, err
		}
		return under(file.Name()), clean, file.Close()
	}
	return w
}
