package follow

import (
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
// The options' Args and Env are the trace's. The Recording must be closed. An error
// is that of the trace, that the replay is not the recorded run, or that it could
// not be followed.
func Repeat(ctx context.Context, trace string, o Options) (*Recording, error) {
	p, err := heddle.OpenReplay(trace)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	c, err := p.Config()
	if err != nil {
		return nil, err
	}
	o.Args, o.Env = c.Args, c.Env
	r := New(o)
	c.Stdout, c.Stderr = io.Discard, io.Discard
	c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{r}}
	result, err := heddle.Run(ctx, c)
	if err == nil {
		err = r.Err()
	}
	if err == nil && result.Outcome == diverged {
		err = errDiverged.New(trace, result.Message)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}
