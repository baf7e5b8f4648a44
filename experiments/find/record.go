package find

import (
	"bytes"
	"context"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/memmodel"
)

// keepFailure reports the failing schedule with a number, and records it.
func (s *search) keepFailure(n int, x execution) error {
	plan, model := s.numberedSchedule(n)
	r := &s.report
	r.Found, r.Failure, r.Number, r.Kind, r.Switches = true, x.failure, n+1, s.kindOf(n), x.switches
	// The failure that was found is recorded even if the search was interrupted.
	return s.recordSchedule(context.Background(), plan, model, x)
}

// recordSchedule executes a schedule again from the start of the program, records it, and verifies the
// recording.
func (s *search) recordSchedule(ctx context.Context, plan *schedule, model memmodel.Model, want execution) error {
	var trace bytes.Buffer
	c := s.configFor(model)
	c.Record = &machine.Record{To: &trace}
	if want.failure.Class == machine.FailureHang {
		c.MaxInstructions = want.instructions
	}
	stage, err := newStage(c, false)
	if err != nil {
		return err
	}
	defer stage.close()
	if _, err := stage.runToSecondThread(ctx); err != nil {
		return err
	}
	stage.begin(plan)
	got, err := s.finish(ctx, stage, plan)
	if err != nil {
		return err
	}
	if want.failure.Class == machine.FailureHang {
		got.points = want.points // the last instruction may be before a point
	}
	if got != want {
		return errUnstable.New(want.failure, "recording", got.failure)
	}
	if _, err := stage.m.Finish(); err != nil {
		return err
	}
	if err := stage.m.CloseTrace(); err != nil {
		return err
	}
	return s.verify(ctx, trace.Bytes(), want.failure)
}

// recordUndisturbed records the undisturbed run.
func (s *search) recordUndisturbed(ctx context.Context) error {
	var trace bytes.Buffer
	c := s.configFor(memmodel.SC)
	c.Record = &machine.Record{To: &trace}
	if _, err := machine.Run(ctx, c, machine.Isolated()); err != nil {
		return err
	}
	return s.verify(ctx, trace.Bytes(), s.report.Failure)
}

// verify writes a trace to its file, and replays it to see that it fails in the same way.
func (s *search) verify(ctx context.Context, trace []byte, want machine.Failure) error {
	path := s.options.Trace
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
	r, err := machine.Run(ctx, c, machine.Isolated())
	if err != nil {
		return err
	}
	got, failed := r.Failure(stderr.Bytes())
	if r.Outcome == machine.OutcomeExit && (!failed || r.ExitCode == s.report.Accepted) && s.isWrong(stdout.Bytes()) {
		got = wrongOutput
	}
	if got != want {
		return errUnstable.New(want, "replay", got)
	}
	return nil
}
