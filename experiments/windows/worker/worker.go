// Package worker carries out a run of an experiment in windows of requests, in a process of its own.
package worker

import (
	"context"
	"io"

	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/experiments/windows/settings"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/worker"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

type (
	request = settings.Request[job.Job]
	reply   = settings.Reply[job.Report]
)

// Serve is the worker's side of settings.Command.
func Serve(stdin io.Reader, stdout io.Writer) error {
	return worker.Serve(stdin, stdout, func(r request) reply { return carryOut(context.Background(), r) })
}

func carryOut(ctx context.Context, r request) (out reply) {
	w := &r.Windows
	schedules := schedwindows.NewStore()
	if w.Schedules != "" {
		var err error
		if schedules, err = windows.LoadStore(w.Schedules); err != nil {
			return reply{Report: job.Report{Failure: job.Explained(err).Error()}}
		}
	}
	p := windows.Parameters{
		Rules: r.Rules, Size: w.Size, Timeout: w.TimeoutOrZero(), Bubble: w.TimeBubbles, Atomics: !w.SyncOnly, Hybrid: w.Hybrid,
		Preconditions: w.Preconditions, Reuse: schedwindows.Reuse(w.Reuse), NoStates: true,
	}
	var d *windows.Driver
	out.Report = r.Job.RunWith(ctx, nil, func(c *machine.Config) []machine.Option {
		d = windows.New(c, p, schedules)
		return d.Options()
	})
	if out.Report.Failure == "" {
		x := d.Report()
		out.Windows = map[string]float64{
			"windows": float64(x.Windows), "full_windows": float64(x.Full), "window_requests": float64(x.Requests),
			"reused_windows": float64(x.Reused), "recorded_windows": float64(x.Recorded), "forced_windows": float64(x.Forced),
			"window_races": float64(x.Races), "window_waited": float64(x.Waited),
		}
	}
	return out
}
