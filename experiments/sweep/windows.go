package sweep

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/windows/settings"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/worker"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// The functions of this file are about experiments whose runs are in windows of requests (docs/windows.md).

// checkWindows returns the first field that is wrong with windows, or because of them.
func (x *Experiment) checkWindows() (err error) {
	if name, found, allowed := x.Windows.Wrong(); name != "" {
		return fieldError("windows."+name, found, allowed)
	}
	if !x.Windows.AreGiven() {
		return nil
	}
	switch file := x.Windows.Schedules; {
	case file != "" && !job.IsFile(file):
		return fieldError("windows.schedules", file, "a file of heddle run --window-schedules")
	case x.Machine.Region != "":
		return fieldError("machine.region", x.Machine.Region, "none with windows")
	case x.Failures.Minimize > 0:
		return fieldError("failures.minimize", x.Failures.Minimize, "0 with windows, whose runs are not shortened")
	}
	for _, policy := range x.policies() {
		if dmt.OrdersOperations(policy) {
			return fieldError("policy", policy, "none of an order of its own: windows have schedules")
		}
	}
	for _, m := range x.gridMemories() {
		memory := x.Machine.Memory
		m.configure(&memory)
		if model := memory.MemoryModel(); model != memmodel.SC {
			return fieldError("model", model.String(), "sc with windows")
		}
	}
	x.rules, err = settings.LoadRules(x.Windows.Tasks)
	return err
}

// windowsKey is all that the windows of runs depend on.
type windowsKey struct {
	Windows   settings.Settings
	Rules     settings.Rules
	Schedules string // the digest of the file
}

// windowsKey returns the part of runs' keys that is about windows, nil without.
func (x *Experiment) windowsKey() (k *windowsKey, err error) {
	if !x.Windows.AreGiven() {
		return nil, nil
	}
	k = &windowsKey{Windows: x.Windows, Rules: x.rules}
	k.Windows.Tasks, k.Windows.Schedules = "", "" // where they are does not matter
	if x.Windows.Schedules != "" {
		if k.Schedules, err = fileDigest(x.Windows.Schedules); err != nil {
			return nil, fieldError("windows.schedules", x.Windows.Schedules, "a file that can be read")
		}
	}
	return k, nil
}

// runInWindows carries out a job in a fresh process.
func (x *Experiment) runInWindows(ctx context.Context, j job.Job) (reply settings.Reply[job.Report], err error) {
	if x.Windows.Schedules != "" {
		j.Hidden = append(slices.Clone(j.Hidden), x.Windows.Schedules)
	}
	err = worker.Spawn(ctx, settings.Command, settings.Request[job.Job]{Job: j, Windows: x.Windows, Rules: x.rules}, &reply, nil, nil)
	return reply, err
}

// windowMeasures are those of experiments with windows.
func windowMeasures() (list []measure) {
	for _, name := range settings.Measures() {
		list = append(list, measure{name: name, title: name, whole: true, of: func(_ Run, r store.Record) float64 {
			if v, known := r.Report.Windows[name]; known {
				return v
			}
			return math.NaN()
		}})
	}
	return list
}
