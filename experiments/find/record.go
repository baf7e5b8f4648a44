package find

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// failureKey sets failures apart: by what fails and where.
type failureKey struct {
	failure machine.Failure
	where   string
}

// keepFailure reports a failing schedule, and records it if it is the first with its failure.
func (s *search) keepFailure(ctx context.Context, plan *schedule, x execution) error {
	where := x.where
	if x.failure.Class == FailureLeak {
		where = s.nameMutex(x.mutex)
	}
	key := failureKey{x.failure, where}
	if i, known := s.failures[key]; known {
		s.report.Failures[i].Schedules++
		return nil
	}
	s.failures[key] = len(s.report.Failures)
	f := Found{
		Failure: x.failure, Where: where, Number: plan.number + 1, Kind: plan.kind, Switches: x.switches,
		Recorded: plan.number + 1, Schedules: 1, Trace: traceName(s.options.Trace, len(s.report.Failures)),
	}
	if x.failure == wrongOutput {
		f.Output, f.Reason = x.printed.output(plan.number, plan.kind).String(), s.outputs.explain()
	}
	// The failure that was found is recorded even if the search was interrupted.
	trace, err := s.recordSchedule(context.WithoutCancel(ctx), plan, x)
	if err != nil {
		return err
	}
	if err := s.verify(context.WithoutCancel(ctx), trace, f.Trace, x.failure, x.printed); err != nil {
		return err
	}
	s.report.Failures = append(s.report.Failures, f)
	return s.shorten(ctx, &s.report.Failures[len(s.report.Failures)-1], plan, x)
}

// mostFailures is the number of different failures after which a search ends.
const mostFailures = 100

// traceName is the file for the recording of the n-th failure, from 0 on.
func traceName(path string, n int) string {
	if n == 0 {
		return path
	}
	ending := filepath.Ext(path)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ending), n+1, ending)
}

// recordSchedule executes a schedule again from the start of the program, records it, and verifies the
// recording.
func (s *search) recordSchedule(ctx context.Context, plan *schedule, want execution) ([]byte, error) {
	var trace bytes.Buffer
	c := s.configFor(plan.kind.Model)
	c.Record = &machine.Record{To: &trace}
	if want.failure.Class == machine.FailureHang {
		c.MaxInstructions = want.instructions
	}
	stage, err := newStage(c, false)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	if _, err := stage.runToSecondThread(ctx); err != nil {
		return nil, err
	}
	stage.begin(plan)
	got, err := s.finish(ctx, stage, plan)
	if err != nil {
		return nil, err
	}
	if want.failure.Class == machine.FailureHang {
		got.points = want.points // the last instruction may be before a point
	}
	if want.failure == wrongOutput && !got.failed { // by comparison with other schedules
		got.failed, got.failure = true, wrongOutput
	}
	if !got.isSame(want) {
		return nil, errUnstable.New(want.failure, "recording", cmp.Or(got.failure.String(), "no failure"))
	}
	if _, err := stage.m.Finish(); err != nil {
		return nil, err
	}
	if err := stage.m.CloseTrace(); err != nil {
		return nil, err
	}
	return trace.Bytes(), nil
}

// keepUndisturbed reports and records the undisturbed run, which fails.
func (s *search) keepUndisturbed(ctx context.Context, failure machine.Failure, p printed) error {
	f := Found{Failure: failure, Schedules: 1, Trace: traceName(s.options.Trace, len(s.report.Failures))}
	if failure == wrongOutput {
		f.Output, f.Reason = p.output(0, Kind{}).String(), s.outputs.explain()
	}
	var trace bytes.Buffer
	c := s.configFor(memmodel.SC)
	c.Record = &machine.Record{To: &trace}
	if _, err := machine.Run(ctx, c, machine.Isolated()); err != nil {
		return err
	}
	s.report.Failures = append(s.report.Failures, f)
	return s.verify(ctx, trace.Bytes(), f.Trace, failure, p)
}

// verify writes a trace to its file, and replays it to see that it fails in the same way.
func (s *search) verify(ctx context.Context, trace []byte, path string, want machine.Failure, wrong printed) error {
	if err := outfile.WriteBytes(path, trace); err != nil {
		return errFile.Wrap(err, path)
	}
	replay, err := machine.OpenReplay(path)
	if err != nil {
		return err
	}
	defer replay.Close()
	c, err := replay.Config()
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	watch := &leaks{mutexes: s.mutexes}
	r, err := machine.Run(ctx, c, machine.Isolated(), machine.WithHook(watch))
	if err != nil {
		return err
	}
	got, failed := failureOfResult(r, stderr.Bytes())
	if r.Outcome == machine.OutcomeExit && (!failed || r.ExitCode == s.report.Accepted) && newPrinted(stdout.Bytes()) == wrong {
		got = wrongOutput
	}
	if r.Outcome == machine.OutcomeExit && watch.leaked != 0 && want.Class == FailureLeak {
		got = want
	}
	if got != want {
		return errUnstable.New(want, "replay", cmp.Or(got.String(), strings.TrimSuffix("the outcome "+string(r.Outcome)+": "+r.Message, ": ")))
	}
	return nil
}

// shorten replaces the trace of a failure by that of a shorter schedule, if one is found. Some schedules,
// mostly ones with very many switches, cannot be repeated in other orders: then one of the next schedules
// that fail in the same way is shortened.
func (s *search) shorten(ctx context.Context, f *Found, plan *schedule, x execution) error {
	if s.options.Minimize == 0 || f.Failure.Class == FailureLeak {
		return nil
	}
	if err := s.shortenTrace(ctx, f, x.instructions); err != nil || f.Shortest == nil || f.Shortest.Reproduced || plan.kind.Strategy == points.Serial {
		return err
	}
	tries, executed := 0, uint64(0)
	for first := 1; first <= othersShortened && (first == 1 || executed < othersInstructions); first += firstBatch {
		var list []*schedule
		for n := range firstBatch {
			list = append(list, s.planSchedule(plan.number+first+n))
		}
		results, err := s.runBatch(ctx, list, true)
		if err != nil {
			return err
		}
		for i, other := range results {
			executed += other.instructions
			if !other.failed || other.failure != x.failure || other.where != x.where || other.switches >= x.switches/2 {
				continue
			}
			trace, err := s.recordSchedule(ctx, list[i], other)
			if err != nil {
				return err
			}
			if err := s.verify(ctx, trace, f.Trace, other.failure, other.printed); err != nil {
				return err
			}
			f.Recorded = list[i].number + 1
			if err := s.shortenTrace(ctx, f, other.instructions); err != nil || f.Shortest == nil || f.Shortest.Reproduced {
				return err
			}
			if tries++; tries == mostTries {
				return nil
			}
		}
	}
	return nil
}

// Numbers of schedules that are executed, and recorded, if one that was found cannot be shortened, and the number of
// instructions after which no more are executed.
const (
	othersShortened    = 100
	mostTries          = 4
	othersInstructions = 1_000_000_000
)

// shortenedInstructions bounds the runs that look for a shorter schedule, but for a few, by their instructions.
const shortenedInstructions = 300_000_000

// shortenTrace looks for a schedule that is shorter than the recorded one, whose run has a number of instructions.
func (s *search) shortenTrace(ctx context.Context, f *Found, instructions uint64) error {
	runs := min(s.options.Minimize, 20+int(shortenedInstructions/(1+instructions)))
	o := minimize.Options{Runs: runs, Right: minimize.Right{Status: s.report.Accepted}}
	if f.Failure == wrongOutput {
		if o.Right.Stdouts = s.outputs.rights(); o.Right.Stdouts == nil {
			return nil
		}
	}
	recorded, err := os.ReadFile(f.Trace)
	if err != nil {
		return errFile.Wrap(err, f.Trace)
	}
	r, err := minimize.Minimize(ctx, f.Trace, f.Trace, o)
	if err != nil && ctx.Err() == nil {
		// The failure is reported with the run that was recorded first.
		f.Shortest, f.NotShortened = nil, err.Error()
		if err := outfile.WriteBytes(f.Trace, recorded); err != nil {
			return errFile.Wrap(err, f.Trace)
		}
		return nil
	}
	f.Shortest = r
	return err
}
