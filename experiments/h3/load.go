package h3

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var errNoBranches = errs.Define("reproduce-without-branches",
	"the trace {file} has no branches",
	"The run was recorded by heddle record without --pt.",
	"Record a failing run with heddle record --pt.")

var errCutStream = errs.Define("reproduce-branches-cut",
	"the branch trace of core {core} ends while the core is running",
	"Packets at its end are lost.",
	"Record the run again.")

var errBranches = errs.Define("reproduce-branches-damaged",
	"the branch trace of core {core} in {file} cannot be followed: {problem}",
	"Packets are lost, or were changed.",
	"Record the run again.")

// LoadPaths reads the paths of a recording's threads.
func LoadPaths(ctx context.Context, r *trace.Reader, file string) (*paths.Profile, error) {
	if !r.Has(trace.PT) {
		return nil, errNoBranches.New(file)
	}
	var switches []event.Switch
	for s, err := range trace.Get[event.Switch](r, trace.Key{Kind: trace.Sideband}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		switches = append(switches, s)
	}
	var cores []paths.Core
	for _, id := range r.IDs(trace.PT) {
		cores = append(cores, paths.Core{ID: arch.CoreID(id), Runs: runs(ctx, r, file, arch.CoreID(id))})
	}
	return paths.Read(cores, switches)
}

// runs decodes a core's branch trace.
func runs(ctx context.Context, r *trace.Reader, file string, core arch.CoreID) iter.Seq2[paths.Run, error] {
	return func(yield func(paths.Run, error) bool) {
		d, err := flow.NewDecoder(r, core)
		if err != nil {
			yield(paths.Run{}, err)
			return
		}
		steps := make([]decode.Step, 256)
		for {
			if err := ctx.Err(); err != nil {
				yield(paths.Run{}, err)
				return
			}
			n, _, err := d.Next(steps)
			for _, s := range steps[:n] {
				run := paths.Run{Addr: arch.Addr(s.Addr), Count: s.Count, Bytes: s.Length(), AppendAddresses: s.AppendAddresses}
				if !yield(run, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) && d.On() {
				err = errCutStream.New(core)
			} else if errors.Is(err, io.EOF) {
				return
			}
			var damaged *decode.Error
			if errors.As(err, &damaged) {
				err = errBranches.Wrap(err, core, file, err)
			}
			if err != nil {
				yield(paths.Run{}, err)
				return
			}
		}
	}
}
