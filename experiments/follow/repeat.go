package follow

import (
	"cmp"
	"context"
	"io"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
)

var errDiverged = errs.Define("follow-not-the-recorded-run",
	"the run of {file} cannot be followed: {how}",
	"Repeated, the run is not the recorded one: heddle is of another version, or a file that the program read was changed.",
	"Record the run again.")

// diverged is the outcome of a replay that is not the recorded run.
const diverged = "diverged"

// Repeat repeats the run of a stored trace and follows it: the places in what is
// found out, threads and counts of instructions, are those of the trace's events.
// A function gives the options for the run's configuration, all but Args and Env. The
// Recording must be closed. An error is that of the trace or of the function, that the
// replay is not the recorded run, or that it could not be followed.
func Repeat(ctx context.Context, trace string, options func(*heddle.Config) (Options, error)) (*Recording, error) {
	var r *Recording
	result, err := heddle.RepeatTrace(ctx, trace, func(c *heddle.Config) error {
		o, err := options(c)
		if err != nil {
			return err
		}
		o.Args, o.Env = c.Args, c.Env
		r = New(o)
		c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{r}}
		return nil
	})
	if r == nil {
		return nil, err
	}
	if err = cmp.Or(err, r.Err(), ctx.Err()); err == nil && result.Outcome == diverged {
		err = errDiverged.New(trace, result.Message)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}
