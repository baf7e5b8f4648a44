package sweep

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/worker"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/dmt"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

// The functions of this file are about experiments whose runs are in windows of requests (docs/windows.md).

// Windows are the windows of all runs of an experiment, as heddle run --windows has them.
type Windows struct {
	// Size is the number of requests of a full window, and Timeout the virtual time after which one that is not full
	// begins.
	Size    int      `mapstructure:"size" positive:"true"`
	Timeout Duration `mapstructure:"timeout" positive:"true"`
	// Tasks are the rules of the server and its tasks: a name that heddle knows, or a file, relative to the experiment file.
	Tasks string `mapstructure:"tasks"`
	// Schedules is a file of schedules that windows follow where they fit. Runs do not add to it, so that none depends on
	// which others were before.
	Schedules string `mapstructure:"schedules"`
	// The others are those of heddle run: --window-sync-only, --window-hybrid, --window-preconditions, --window-reuse and
	// --time-bubbles.
	SyncOnly      bool   `mapstructure:"sync_only"`
	Hybrid        bool   `mapstructure:"hybrid"`
	Preconditions bool   `mapstructure:"preconditions"`
	Reuse         string `mapstructure:"reuse"`
	TimeBubbles   uint64 `mapstructure:"time_bubbles"`

	rules windows.Rules
}

// areGiven reports whether the runs are in windows.
func (w *Windows) areGiven() bool { return w.Size > 0 }

// completeFields resolves paths, and reads the rules.
func (w *Windows) completeFields(dir string) (err error) {
	if w.Schedules != "" && !filepath.IsAbs(w.Schedules) {
		w.Schedules = filepath.Join(dir, w.Schedules)
	}
	if !w.areGiven() || w.Tasks == "" {
		return nil
	}
	if !slices.Contains(windows.BuiltinRules(), w.Tasks) && !filepath.IsAbs(w.Tasks) {
		w.Tasks = filepath.Join(dir, w.Tasks)
	}
	w.rules, err = windows.LoadRules(w.Tasks)
	return err
}

// Limits of windows, as those of the command line.
const (
	maxWindow      = 1_000_000
	minTimeout     = time.Microsecond
	maxTimeout     = time.Hour
	timeoutAllowed = "1us to 1h of virtual time"
)

// checkWindows returns the first field that is wrong with windows, or because of them.
func (x *Experiment) checkWindows() error {
	w := &x.Windows
	if !w.areGiven() {
		switch {
		case w.Size < 0:
			return fieldError("windows.size", w.Size, "1 to 1000000")
		case w.Timeout != 0 || w.Tasks != "" || w.Schedules != "" || w.SyncOnly || w.Hybrid || w.Preconditions || w.Reuse != "" || w.TimeBubbles != 0:
			return fieldError("windows.size", "missing", "the number of requests of a full window, 1 to 1000000")
		}
		return nil
	}
	const alone = "none of an order of its own: windows have schedules"
	switch {
	case w.Size > maxWindow:
		return fieldError("windows.size", w.Size, "1 to 1000000")
	case w.Timeout != 0 && (time.Duration(w.Timeout) < minTimeout || time.Duration(w.Timeout) > maxTimeout):
		return fieldError("windows.timeout", time.Duration(w.Timeout), timeoutAllowed)
	case w.Tasks == "":
		return fieldError("windows.tasks", "missing", fmt.Sprintf("a file of rules, or one of %v", windows.BuiltinRules()))
	case w.Reuse != "" && !slices.Contains([]string{string(schedwindows.Online), string(schedwindows.Shadow), string(schedwindows.Off)}, w.Reuse):
		return fieldError("windows.reuse", w.Reuse, "online, shadow, off")
	case x.Machine.Region != "":
		return fieldError("machine.region", x.Machine.Region, "none with windows")
	case x.Failures.Minimize > 0:
		return fieldError("failures.minimize", x.Failures.Minimize, "0 with windows, whose runs are not shortened")
	}
	for _, policy := range x.policies() {
		if dmt.OrdersOperations(policy) {
			return fieldError("policy", policy, alone)
		}
	}
	for _, m := range x.gridMemories() {
		memory := x.Machine.Memory
		m.configure(&memory)
		if model := memory.MemoryModel(); model != memmodel.SC {
			return fieldError("model", model.String(), "sc with windows")
		}
	}
	return nil
}

// windowsKey is all that the windows of runs depend on.
type windowsKey struct {
	Windows   Windows
	Rules     windows.Rules
	Schedules string // the digest of the file
}

// windowsKey returns the part of runs' keys that is about windows, nil without.
func (x *Experiment) windowsKey() (*windowsKey, error) {
	if !x.Windows.areGiven() {
		return nil, nil
	}
	k := &windowsKey{Windows: x.Windows, Rules: x.Windows.rules}
	k.Windows.Schedules, k.Windows.Tasks = "", "" // where they are does not matter
	if x.Windows.Schedules == "" {
		return k, nil
	}
	_, err := windows.LoadStore(x.Windows.Schedules)
	if err == nil {
		k.Schedules, err = fileDigest(x.Windows.Schedules)
	}
	return k, err
}

// WindowsCommand is the hidden command under which heddle carries out a run in windows for a sweep.
const WindowsCommand = "worker-windows"

// windowed is a request for a run in windows.
type windowed struct {
	Job       job.Job            `json:"job"`
	Windows   windows.Parameters `json:"windows"`
	Schedules string             `json:"schedules"`
}

// windowedReply is the reply. The report has no list of windows.
type windowedReply struct {
	Report  job.Report      `json:"report"`
	Windows *windows.Report `json:"windows,omitempty"`
}

// inWindows is the request for a job of the experiment.
func (x *Experiment) inWindows(j job.Job) *windowed {
	w := &x.Windows
	if w.Schedules != "" {
		j.Hidden = append(slices.Clone(j.Hidden), w.Schedules)
	}
	return &windowed{Job: j, Schedules: w.Schedules, Windows: windows.Parameters{
		Rules: w.rules, Size: w.Size, Timeout: time.Duration(w.Timeout), Bubble: w.TimeBubbles, Atomics: !w.SyncOnly, Hybrid: w.Hybrid,
		Preconditions: w.Preconditions, Reuse: schedwindows.Reuse(w.Reuse), NoStates: true,
	}}
}

// spawn carries out the request in a fresh process.
func (w *windowed) spawn(ctx context.Context) (reply windowedReply, err error) {
	err = worker.Spawn(ctx, WindowsCommand, w, &reply, nil, nil)
	return reply, err
}

// ServeWindows is the worker's side of it.
func ServeWindows(stdin io.Reader, stdout io.Writer) error {
	return worker.Serve(stdin, stdout, func(w windowed) windowedReply { return w.carryOut(context.Background()) })
}

func (w *windowed) carryOut(ctx context.Context) (reply windowedReply) {
	schedules := schedwindows.NewStore()
	if w.Schedules != "" {
		var err error
		if schedules, err = windows.LoadStore(w.Schedules); err != nil {
			return windowedReply{Report: job.Report{Failure: job.Explained(err).Error()}}
		}
	}
	var d *windows.Driver
	reply.Report = w.Job.RunWith(ctx, nil, func(c *machine.Config) []machine.Option {
		d = windows.New(c, w.Windows, schedules)
		return d.Options()
	})
	if reply.Report.Failure == "" {
		reply.Windows = d.Report()
		reply.Windows.List = nil
	}
	return reply
}

// windowMeasures are those of experiments with windows.
var windowMeasures = []measure{
	windowMeasure("windows", "", true, func(r *windows.Report) float64 { return float64(r.Windows) }),
	windowMeasure("full_windows", "", true, func(r *windows.Report) float64 { return float64(r.Full) }),
	windowMeasure("window_requests", "", true, func(r *windows.Report) float64 { return float64(r.Requests) }),
	windowMeasure("reused_windows", "", true, func(r *windows.Report) float64 { return float64(r.Reused) }),
	windowMeasure("recorded_windows", "", true, func(r *windows.Report) float64 { return float64(r.Recorded) }),
	windowMeasure("forced_windows", "", true, func(r *windows.Report) float64 { return float64(r.Forced) }),
	windowMeasure("window_races", "", true, func(r *windows.Report) float64 { return float64(r.Races) }),
	windowMeasure("window_waited", "cycles", true, func(r *windows.Report) float64 { return float64(r.Waited) }),
}

func windowMeasure(name, unit string, whole bool, of func(*windows.Report) float64) measure {
	return measure{name: name, title: name, unit: unit, whole: whole, of: func(_ Run, r store.Record) float64 {
		if r.Report.Windows == nil {
			return math.NaN()
		}
		return of(r.Report.Windows)
	}}
}
