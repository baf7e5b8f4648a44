package concolicrun

import (
	"cmp"
	"context"
	"io"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
)

var (
	errDiverged = errs.Define("follow-not-the-recorded-run",
		"the run of {file} cannot be followed: {how}",
		"Repeated, the run is not the recorded one: heddle is of another version, or a file that the program read was changed.",
		"Record the run again.")
	errNotFollowed = errs.Define("level-cannot-be-followed",
		"the instructions of the run in {file} cannot be followed: its processor is of level {level}, and slices, preconditions and symbolic traces know those of x86-64-v2; record it with heddle record --cpu x86-64-v2",
		"These analyses have libVEX translate instructions, without AVX: it would take LZCNT for BSR.",
		"Record the run again with heddle record --cpu x86-64-v2. Races, memory traces, replays and the debugger work with every level.")
)

// CheckFollowed refuses a recorded run whose instructions the analyses by libVEX do not know.
func CheckFollowed(file string, c *machine.Config) error {
	if c.CPU > arch.V2 {
		return errNotFollowed.New(file, c.CPU.String())
	}
	return nil
}

// Repeat replays the run of a stored trace and executes it concolically: threads and counts
// of instructions are those of the trace's events. A function gives the options for the
// run's configuration, except Args and Env. The Recording must be closed. It returns an
// error if the trace cannot be read, if the function fails, if the replay is not the
// recorded run, or if the concolic execution fails.
func Repeat(ctx context.Context, trace string, options func(*machine.Config) (Options, error)) (*Recording, error) {
	var r *Recording
	result, err := machine.RepeatTrace(ctx, trace, func(c *machine.Config) ([]machine.Option, error) {
		if err := CheckFollowed(trace, c); err != nil {
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
