package h3

import (
	"context"
	"fmt"
	"strconv"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
)

// Checkpoints says from where a trace is solved (H3, section 6).
type Checkpoints struct {
	// Every is how many instructions of all threads lie between checkpoints; 0: no checkpoints.
	Every uint64
	// Only is the one checkpoint that is tried, from 1, or LastCheckpoint; 0: from the
	// last one back to the program's begin, until there is a schedule.
	Only int
}

// LastCheckpoint is the last one before the failure.
const LastCheckpoint = -1

// ParseCheckpoints parses the value of --checkpoint: none, auto, last, or a number.
func ParseCheckpoints(text string, every uint64) (Checkpoints, bool) {
	switch text {
	case "none":
		return Checkpoints{}, true
	case "auto":
		return Checkpoints{Every: every}, every > 0
	case "last":
		return Checkpoints{every, LastCheckpoint}, every > 0
	}
	n, err := strconv.Atoi(text)
	return Checkpoints{every, n}, err == nil && n > 0 && every > 0
}

// candidateNumbers are the checkpoints that are tried one after the other; 0 is the program's begin.
func (c Checkpoints) candidateNumbers(instructions uint64) []int {
	if c.Every == 0 {
		return []int{0}
	}
	last := int(max(instructions, 1)-1) / int(c.Every)
	switch {
	case c.Only > 0:
		return []int{c.Only}
	case c.Only == LastCheckpoint:
		return []int{last}
	}
	var all []int
	for n := last; n >= 0; n-- {
		all = append(all, n)
	}
	return all
}

// haltAtCheckpoint repeats the run up to a checkpoint: the first place after its instructions at
// which the state of each thread is known.
func (r *Recording) haltAtCheckpoint(ctx context.Context, after uint64) (*startPoint, error) {
	s := newCheckpointFinder(r.profile, r.begin.names.functions, r.begin.thread)
	var threads []symtrace.CheckpointThread
	halt, err := runToQuantum(ctx, r.replay, after, func(h *PausedRun) bool {
		all, ok := s.threadsAt(h)
		threads = all
		return ok
	})
	if err != nil {
		return nil, err
	}
	from := r.begin.image
	image := &symtrace.Image{
		Threads: threads, LastThread: halt.Last(), Functions: from.Functions, Objects: from.Objects,
		NewThread: from.NewThread,
	}
	fillFromMachine(image, halt)
	return &startPoint{image, r.begin.thread, halt.Instructions, halt.Decisions(), halt, r.begin.names}, nil
}

// tryCheckpoints looks for a schedule from the last checkpoint, then from the ones before, and in
// the end from the program's begin. Each attempt has half of the time that is left, the last one
// all.
func (r *Recording) tryCheckpoints(l *limiter, out *Outcome, o *Options) error {
	all := o.Checkpoints.candidateNumbers(r.replay.Recorded().Instructions)
	for i, n := range all {
		last := i == len(all)-1
		err := r.tryCheckpoint(l.shareOf(last), out, o, n)
		if last || err == nil && out.Verified || l.isTimeOver() {
			return err
		}
		why := out.describeAnswer
		if err != nil {
			why = err.Error
		}
		out.SkippedCheckpoints = append(out.SkippedCheckpoints, fmt.Sprintf("%d: %s", n, why()))
	}
	return nil
}

// tryCheckpoint looks for a schedule from a checkpoint on.
func (r *Recording) tryCheckpoint(l *limiter, out *Outcome, o *Options, n int) error {
	r.start, out.Checkpoint = r.begin, n
	if n > 0 {
		from, err := r.haltAtCheckpoint(l.ctx, uint64(n)*o.Checkpoints.Every)
		if err != nil {
			return l.limitError(err, comingToCheckpoint)
		}
		defer from.closeMachine()
		r.start = from
	}
	out.CheckpointInstructions, out.decisions = r.start.instructions, r.start.decisions
	return r.findSchedule(l, out, o)
}
