package frost

import (
	"context"
	"io"
	"os"
	"strings"

	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/frost/epoch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var errNaming = errs.Define("frost-no-place-for-trace",
	"the folder for temporary files cannot be used for the trace of --name-races",
	"To name the instructions that race, the epoch is executed again and recorded in the folder for temporary files; the rest of the sentence says why it could not be used.",
	"Set TMPDIR to a folder with room, or leave --name-races out.")

// NameRaces executes a run again up to its first epoch with a race, if it has one,
// under a race detector that goes by happens-before (section 3.3.2), which sees the
// thread-parallel replica and the order that the others had to follow, atomic
// instructions with it. The report has the races of that epoch, named by
// instruction. Of a run that was to detect only, whose thread-parallel replicas were
// all committed, it has those of all epochs from that one on. The configuration is
// the run's, with the same standard input.
//
// It returns nil if there was no race.
func NameRaces(ctx context.Context, c machine.Config, r *Report) (*racereport.Report, error) {
	parts, first := r.optionsToRepeat()
	if first < 0 {
		return nil, nil
	}
	return detectRaces(ctx, c, parts, first)
}

// AllRaces is NameRaces of all epochs of a run that was to detect only.
func AllRaces(ctx context.Context, c machine.Config, r *Report) (*racereport.Report, error) {
	parts, _ := r.optionsToRepeat()
	return detectRaces(ctx, c, parts, 0)
}

// optionsToRepeat lists the epochs up to the first with a race, and its place, or -1; of a
// run that was to detect only all epochs.
func (r *Report) optionsToRepeat() (parts []epoch.Part, first int) {
	first = -1
	for _, e := range r.Epochs {
		if e.Attempt > 0 {
			continue
		}
		parts = append(parts, epoch.Part{EpochOptions: r.Options.epochOptions(e.Target, e.Grace)})
		if (e.Race || e.Harmless) && first < 0 {
			first = len(parts) - 1
			if !r.Options.DetectOnly {
				break
			}
		}
	}
	return parts, first
}

// epochOptions is how an epoch of a length is executed, which continues for a time after output.
func (o *Options) epochOptions(length, grace float64) epoch.EpochOptions {
	if o.DetectOnly {
		grace = 0
	}
	return epoch.EpochOptions{Length: length, Grace: grace, Hang: o.Hang}
}

// detectRaces finds the races of epochs, from one on.
func detectRaces(ctx context.Context, c machine.Config, parts []epoch.Part, first int) (*racereport.Report, error) {
	file, err := os.CreateTemp("", "heddle-frost-")
	if err != nil {
		return nil, errNaming.Wrap(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	peregrine.BindNow(&c)
	c.Stdout, c.Stderr, c.Hidden = io.Discard, io.Discard, append(c.Hidden, file.Name())
	c.Record = &machine.Record{To: file, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
	if err := epoch.Repeat(ctx, c, parts); err != nil {
		return nil, err
	}
	t, err := trace.Open(file.Name())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	o := racereport.Options{Benign: racereport.Mark, Since: parts[first].Begin}
	return racereport.Make(strings.Join(c.Args, " "), t, o)
}
