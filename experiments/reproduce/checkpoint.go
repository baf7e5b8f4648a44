package reproduce

import (
	"context"
	"fmt"
	"strconv"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
)

// Checkpoints says from where a trace is solved (H3, section 6).
type Checkpoints struct {
	// Every is how many instructions of all threads are from one checkpoint to the next;
	// 0: there are none.
	Every uint64
	// Only is the one checkpoint that is tried, from 1, or LastCheckpoint; 0: from the
	// last one back to the program's begin, until there is a schedule.
	Only int
}

// LastCheckpoint is the last one before the failure.
const LastCheckpoint = -1

// ParseCheckpoints reads what --checkpoint says: none, auto, last, or a number.
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

// tried are the checkpoints that are tried one after the other; 0 is the program's begin.
func (c Checkpoints) tried(instructions uint64) []int {
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

// checkpoint repeats the run up to a checkpoint: the first place behind its instructions
// at which it is known of each thread what it is doing.
func (r *Recording) checkpoint(ctx context.Context, behind uint64) (*start, error) {
	s := newStander(r.profile, r.begin.names.functions, r.begin.thread)
	var threads []symtrace.Stand
	halt, err := r.replay.HaltBetween(ctx, behind, func(h *heddle.Halt) bool {
		all, ok := s.stands(h)
		threads = all
		return ok
	})
	if err != nil {
		return nil, err
	}
	from := r.begin.image
	image := &symtrace.Image{
		Threads: threads, Last: halt.Last(), Functions: from.Functions, Objects: from.Objects, ThreadBlock: from.ThreadBlock,
		ThreadPointer: from.ThreadPointer, BlockStart: from.BlockStart, Stack: from.Stack, ThreadID: from.ThreadID,
	}
	shows(image, halt)
	return &start{image, r.begin.thread, halt.Instructions, halt.Decisions(), halt, r.begin.names}, nil
}

// fromCheckpoints looks for a schedule from the last checkpoint on, from the one before
// if there is none, and in the end from the program's begin. Each has half of the time
// that is left, the last one all.
func (r *Recording) fromCheckpoints(l *limiter, out *Outcome, o *Options) error {
	all := o.Checkpoints.tried(r.replay.Recorded().Instructions)
	for i, n := range all {
		last := i == len(all)-1
		err := r.fromCheckpoint(l.share(last), out, o, n)
		if last || err == nil && out.Verified || l.over() {
			return err
		}
		why := out.answer
		if err != nil {
			why = err.Error
		}
		out.Passed = append(out.Passed, fmt.Sprintf("%d: %s", n, why()))
	}
	return nil
}

// fromCheckpoint looks for a schedule from a checkpoint on.
func (r *Recording) fromCheckpoint(l *limiter, out *Outcome, o *Options, n int) error {
	r.start, out.Checkpoint = r.begin, n
	if n > 0 {
		from, err := r.checkpoint(l.ctx, uint64(n)*o.Checkpoints.Every)
		if err != nil {
			return l.timely(err, comingToCheckpoint)
		}
		defer from.close()
		r.start = from
	}
	out.Behind, out.decisions = r.start.instructions, r.start.decisions
	return r.look(l, out, o)
}
