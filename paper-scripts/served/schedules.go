package served

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-dmt/heddle/paper-scripts/study"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

// measureSchedules runs a load without windows, records schedules of windows, and follows them on the same machine, for
// their cost, and on others.
func measureSchedules(ctx context.Context, o *study.Options, s *settings, l *load) (map[string]string, error) {
	free, err := l.run(ctx, way{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	kinds := []string{"sync"}
	if l.Hybrid {
		kinds = append(kinds, "hybrid")
	}
	var spent []time.Duration
	var throughput []float64
	for _, kind := range kinds {
		o.Say("  %s: %s-schedules", l.Name, kind)
		p, store := l.parameters(), schedwindows.NewStore()
		p.Hybrid = kind == "hybrid"
		var first *outcome
		took, err := study.ProcessorTimeOf(func() (err error) {
			first, err = l.run(ctx, way{windows: &p, store: store})
			return err
		})
		if err != nil {
			return nil, err
		}
		spent = append(spent, took)
		if p.Hybrid {
			values["races"], values["constraints"] = fmt.Sprint(first.report.Races), fmt.Sprint(first.report.Constraints)
			with := max(first.report.Exact+first.report.Admitted+first.report.Refused, 1)
			values["detection"] = study.Seconds((spent[1] - spent[0]) / time.Duration(with))
		}
		p.Hybrid = false
		var outputs, states, all int
		for i := range s.Runs + 1 {
			x, err := l.run(ctx, way{number: i, windows: &p, store: store})
			if err != nil {
				return nil, err
			}
			if i == 0 {
				throughput = append(throughput, x.requests.PerSecond)
				values[kind+"_throughput"] = fmt.Sprintf("%.3f", x.requests.PerSecond/free.requests.PerSecond)
				values[kind+"_response"] = fmt.Sprintf("%.3f", x.requests.Response.Mean/free.requests.Response.Mean)
				continue
			}
			a, b, n := differences(first.report, x.report)
			outputs, states, all = outputs+a, states+b, all+n
		}
		values[kind+"_outputs"], values[kind+"_states"] = verdict(outputs, all), verdict(states, all)
	}
	if l.Hybrid {
		values["hybrid_over_sync"] = fmt.Sprintf("%.1f %%", 100*(throughput[0]/throughput[1]-1))
	}
	return values, nil
}

// verdict says whether windows were equal in all runs.
func verdict(different, of int) string {
	if different == 0 {
		return "yes"
	}
	return fmt.Sprintf("no (%d of %d windows)", different, of)
}
