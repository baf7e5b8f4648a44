package concolicrun

import (
	"cmp"
	"context"
	"io"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
)

var errDiverged = errs.Define("follow-not-the-recorded-run",
	"the run of {file} cannot be followed: {how}",
	"Repeated, the run is not the recorded one: heddle is of another version, or a file that the program read was changed.",
	"Record the run again.")

// Repeat replays the run of a stored trace and executes it concolically: threads and counts
// of instructions are those of the trace's events. A function gives the options for the
// run's configuration, except Args and Env. The Recording must be closed. It returns an
// error if the trace cannot be read, if the function fails, if the replay is not the
// recorded run, or if the concolic execution fails.
func Repeat(ctx context.Context, trace string, options func(*machine.Config) (Options, error)) (*Recording, error) {
	var r *Recording
	result, err := machine.RepeatTrace(ctx, trace, func(c *machine.Config) ([]machine.Option, error) {
		if err := machine.CheckFollowed(trace, c); err != nil {
			return nil, err
		}
		o, err := options(c)
		if err != nil {
			return nil, err
		}
		o.Args, o.Env = c.Args, c.Env
		r = New(o)
		c.Record = &machine.Record{To: io.Discard, Stretch: c.Replay.Stretch()}
		return []machine.Option{machine.WithRecordings(r)}, nil
	})
	if r == nil {
		return nil, err
	}
	if err = cmp.Or(err, r.Err(), ctx.Err()); err == nil && result.Outcome == machine.OutcomeDiverged {
		err = errDiverged.New(trace, result.Message)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}
