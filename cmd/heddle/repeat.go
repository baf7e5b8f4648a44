package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var errNotRepeated = errs.Define("analysis-replay-failed",
	"{file} was recorded without what the analysis needs, and its replay ended early: {reason}",
	"An analysis of a trace without the events that it needs replays the run and records them. The replay was interrupted, or it was not the recorded run.",
	"Record the run with these events: with heddle record --races for races, with heddle record --pt for reproduce.")

// lacks reports whether the events of a kind were not recorded in a trace, although its run can be replayed. Accesses to
// memory that are those of a replay were.
func lacks(path string, kind trace.Kind) (bool, error) {
	missing := false
	err := command.WithTrace(path, func(r *trace.Reader) error {
		recorded, err := r.Recorded(kind)
		missing = !recorded && r.Has(trace.Decisions) && (kind != trace.Memory || !accesses.AreRepeated(r))
		return err
	})
	return missing, err
}

// repeat replays the run of a trace with further recordings, and shows nothing of it.
func (a *app) repeat(ctx context.Context, path string, rec recordFlags) error {
	r, err := machine.OpenReplay(path)
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		return err
	}
	silent := *a
	silent.guestStdout, silent.stderr = io.Discard, io.Discard
	result, err := silent.recorded(ctx, runFlags{quiet: true}, rec, c)
	if err != nil {
		return err
	}
	switch result.Outcome {
	case machine.OutcomeInterrupted, machine.OutcomeDiverged, machine.OutcomeDamaged:
		if status, ok := interrupted(ctx); ok {
			a.status = status
		}
		return errNotRepeated.New(path, cmp.Or(result.Message, string(result.Outcome)))
	}
	return nil
}

// withBranches replays a trace that has no branches, and records them. It returns the name of a trace that has
// them, and a function that removes it if it is not the given one.
func (a *app) withBranches(ctx context.Context, path string) (with string, remove func(), err error) {
	nothing := func() {}
	missing, err := lacks(path, trace.PT)
	if err != nil || !missing {
		return path, nothing, err
	}
	a.say("%s has no branches: the run is replayed to record them", path)
	folder, err := os.MkdirTemp("", "heddle-reproduce-")
	if err != nil {
		return "", nothing, err
	}
	remove = func() { os.RemoveAll(folder) }
	var rec recordFlags
	rec.define(pflag.NewFlagSet("", pflag.ContinueOnError)) // the defaults
	rec.pt, rec.output = true, filepath.Join(folder, filepath.Base(path))
	if err := a.repeat(ctx, path, rec); err != nil {
		remove()
		return "", nothing, err
	}
	return rec.output, remove, nil
}
