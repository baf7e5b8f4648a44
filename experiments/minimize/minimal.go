// Package minimize makes, out of the trace of a run that fails, the trace of a run
// that fails in the same way with as few context switches and delayed stores as can
// be found, and a report on it for people.
//
// The search is that of package sched/minimize, over runs of Trial. This
// package keeps the files, and names source lines and variables.
//
// Invariants:
//
//  1. A trace that was written replays to the failure of the first one: that was
//     tried.
//  2. A search that was cut short leaves the best trace so far, which is the first
//     one if nothing better was found.
package minimize

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/recorder/export"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

var (
	errFile = errs.Define("minimal-file",
		"cannot use {file} for the shortest failing run",
		"The file or its folder cannot be read or written, or the disk is full.",
		"Make room, or name another file.")
	errUnstable = errs.Define("minimal-not-repeated",
		"the shortest failing run in {file} ends with {found} when it is replayed, and not with {failure}",
		"A run and its replay differ: this is a mistake in heddle.",
		"Report the sentence, with the trace that the search began with.")
)

// Options tune a search.
type Options struct {
	// Runs bounds how many schedules are tried; 0 means no bound.
	Runs int
	// Right says which runs that exit do not fail.
	Right Right
	// Perfetto, when set, is the file that gets a timeline of the run.
	Perfetto string
	// Progress, when set, is called after each schedule that was tried.
	Progress func(runs int, best minimize.Cost)
}

// Report is the result of a search.
type Report struct {
	Failure machine.Failure `json:"failure"`
	// Before and After are the costs of the recorded and of the shortest schedule.
	Before minimize.Cost `json:"before"`
	After  minimize.Cost `json:"after"`
	// Runs is how many schedules were tried.
	Runs int `json:"runs"`
	// Complete: no single change makes the schedule shorter; otherwise the search was cut short.
	Complete bool `json:"complete"`
	// Reproduced: the failure shows when the schedule is followed by the order of threads and
	// stores alone; otherwise nothing could be left out.
	Reproduced bool   `json:"reproduced"`
	Steps      []Step `json:"steps"`
}

// Step is a step of the shortest schedule.
type Step struct {
	Thread       arch.ThreadID `json:"thread"`
	Core         arch.CoreID   `json:"core"`
	Instructions uint64        `json:"instructions"`
	// End is how it ends: the thread's last action (the name of a system call, pause, fault), or
	// EndPreempted or EndLimit.
	End string `json:"end"`
	// Function and Line are where, as far as is known.
	Function string `json:"function,omitempty"`
	Line     string `json:"line,omitempty"`
	// Waiting are stores that could be committed and are not, during the step.
	Waiting []Waiting `json:"waiting,omitempty"`
}

// How steps end that the thread does not end.
const (
	EndPreempted = "preempted" // another thread continues
	// EndInside: another thread acts between two accesses of an instruction.
	EndInside = "preempted inside"
	EndLimit  = "limit" // the run has reached its limit of instructions
)

// Waiting are stores of a thread to one address.
type Waiting struct {
	Thread arch.ThreadID `json:"thread"`
	Addr   arch.Addr     `json:"addr"`
	Stores int           `json:"stores"`
	// Variable is the variable at the address, if it is known.
	Variable string `json:"variable,omitempty"`
}

// Minimize shrinks the run in the trace from and writes that of the shortest one
// to to. When ctx is done during the search the best so far is written and
// reported.
func Minimize(ctx context.Context, from, to string, o Options) (*Report, error) {
	r, err := machine.OpenReplay(from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h, err := NewTrial(ctx, r, o.Right)
	if err != nil {
		return nil, err
	}
	options := minimize.Options{Runs: o.Runs, Progress: o.Progress, Probe: h.Probe}
	result, err := minimize.Minimize(ctx, h.Schedule(), h.Run, options)
	if err == nil && !result.Reproduced && result.Complete {
		if err = h.CountAll(ctx); err == nil {
			result, err = minimize.Minimize(ctx, h.Schedule(), h.Run, options)
		}
	}
	if err != nil {
		return nil, err
	}
	if result.Schedule.Cost().Delays > 0 && result.Recording != nil {
		o, err := h.RunExact(context.WithoutCancel(ctx), result.Schedule)
		if err != nil {
			return nil, err
		}
		if o.Fails && o.Schedule.Cost() == result.Schedule.Cost() {
			result.Recording = o.Recording
		}
	}
	if result.Recording == nil {
		if result.Recording, err = os.ReadFile(from); err != nil {
			return nil, errFile.Wrap(withoutPath(err), from)
		}
	}
	if err := outfile.WriteBytes(to, result.Recording); err != nil {
		return nil, errFile.Wrap(err, to)
	}
	report := &Report{
		Failure: h.Failure(), Before: h.Schedule().Cost(), After: result.Schedule.Cost(), Runs: result.Runs,
		Complete: result.Complete, Reproduced: result.Reproduced,
	}
	// The result so far is reported even if the search was interrupted.
	return report, report.explainSteps(context.WithoutCancel(ctx), to, o)
}

// explainSteps replays the shortest run and fills in its steps.
func (p *Report) explainSteps(ctx context.Context, file string, o Options) error {
	r, err := machine.OpenReplay(file)
	if err != nil {
		return err
	}
	defer r.Close()
	h, err := NewTrial(ctx, r, o.Right)
	if err != nil {
		return err
	}
	if f := h.Failure(); f != p.Failure {
		return errUnstable.New(file, f, p.Failure)
	}
	schedule, stops, err := h.Stops(ctx)
	if err != nil {
		return err
	}
	c, err := r.Config()
	if err != nil {
		return err
	}
	p.Steps = describeSteps(schedule, stops, c.RootFS)
	if o.Perfetto == "" {
		return nil
	}
	return writePerfetto(file, o.Perfetto, c.Costs.MHz)
}

// Explain describes the schedule of a recorded run that failed.
func Explain(ctx context.Context, file string, o Options) (*Report, error) {
	r, err := machine.OpenReplay(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h, err := NewTrial(ctx, r, o.Right)
	if err != nil {
		return nil, err
	}
	p := &Report{Failure: h.Failure(), Before: h.Schedule().Cost(), After: h.Schedule().Cost(), Reproduced: true}
	return p, p.explainSteps(ctx, file, o)
}

// writePerfetto exports a trace.
func writePerfetto(from, to string, mhz uint32) error {
	r, err := trace.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	var damage error
	err = outfile.Write(to, func(w io.Writer) error {
		damage = errors.Join(export.Perfetto(w, r, mhz)...)
		return damage
	})
	if err != nil && damage == nil {
		err = errFile.Wrap(err, to)
	}
	return err
}

// withoutPath is an error without the name of the file, which the sentence has.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
