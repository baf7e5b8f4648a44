package served

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	schedwindows "github.com/heddle-dmt/heddle/sched/windows"

	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// maxCores bounds the cores of a server.
const maxCores = 16

// way is how a load is run.
type way struct {
	// number chooses the machine: 0 is that of the load, without jitter, and each other one has another seed and number of cores.
	number int
	// windows are those of the run, nil: it has none. Orders of the store are followed.
	windows *windows.Parameters
	store   *schedwindows.Store
	// requests, if it is not 0, is the number of requests.
	requests int
	record   *machine.Record
}

// outcome is a run of a load.
type outcome struct {
	requests requests.Summary
	report   *windows.Report // nil without windows
}

// otherCores are the cores of further machines.
var otherCores = []int{1, 8, 3, 2, 5}

// config is the configuration of a run.
func (l *load) config(w way) machine.Config {
	values := map[string]string{}
	maps.Copy(values, l.Values)
	if w.requests > 0 {
		values[l.Count] = strconv.Itoa(w.requests)
	}
	cores, calm := l.Cores, 0.0
	c := machine.DefaultConfig()
	c.Seed = uint64(1 + w.number)
	if w.number > 0 {
		cores = otherCores[(w.number-1)%len(otherCores)]
		c.Sched.DelayRate = []float64{0, 0.1, 0.3}[w.number%3]
	} else {
		c.Sched.Jitter = &calm
	}
	shared := *l.server
	shared.ClientCores = 0 // the guest sees the cores of the first run, to which no process can be bound on other machines
	if len(shared.Ready) == 0 {
		shared.Ready = []string{"sleep", "1"} // how often a client would have to try depends on timing
	}
	c.Args, c.Dir, c.Cores = shared.Args(l.Cores, values), "/tmp", cores
	c.UID, c.GID, c.Requests, c.Record = 0, 0, []uint16{l.server.Port}, w.record
	return c
}

// run runs a load.
func (l *load) run(ctx context.Context, w way) (*outcome, error) {
	c := l.config(w)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	var d *windows.Driver
	var options []machine.Option
	if w.windows != nil {
		d = windows.New(&c, *w.windows, w.store)
		options = d.Options()
	}
	r, err := machine.Run(ctx, c, options...)
	if err != nil {
		return nil, err
	}
	x := &outcome{}
	if d != nil {
		x.report = d.Report()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s := r.Stretch; s != nil && s.Why != "" {
		return nil, errors.New(s.Why)
	}
	if r.Stretch == nil && (r.Outcome != machine.OutcomeExit || r.ExitCode != 0) {
		return nil, errors.New(l.server.Failure(r, messages.Bytes()))
	}
	for _, s := range r.Requests {
		if s.Port == l.server.Port && s.Client == l.server.Clients && s.Requests > 0 {
			x.requests = s
		}
	}
	if r.Stretch == nil && x.requests.Requests == 0 {
		return nil, fmt.Errorf("%s: no request was answered", l.Name)
	}
	return x, nil
}

// parameters are the windows of a load.
func (l *load) parameters() windows.Parameters {
	return windows.Parameters{Rules: l.rules, Size: l.Window, Atomics: true}
}

// withRequests are the windows that have requests: whether the last ends of clients or the signal that ends the server come first
// depends on the clients.
func withRequests(r *windows.Report) (list []schedwindows.Window) {
	for i := range r.List {
		if r.List[i].Requests > 0 {
			list = append(list, r.List[i])
		}
	}
	return list
}

// differences counts the windows with requests of two runs, and those with another output, and with another state.
func differences(first, other *windows.Report) (outputs, states, all int) {
	a, b := withRequests(first), withRequests(other)
	for i := range max(len(a), len(b)) {
		missing := i >= len(a) || i >= len(b)
		if missing || a[i].Input != b[i].Input || a[i].Output != b[i].Output {
			outputs++
		}
		if missing || a[i].State != b[i].State {
			states++
		}
	}
	return outputs, states, max(len(a), len(b))
}
