package h3

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errTimeout = errs.Define("reproduce-timeout",
	"the time limit was reached while {activity}; allow more time with --timeout",
	"The run is long, or --timeout is short.",
	"Allow more time with --timeout, or solve only the last part of the run with --checkpoint auto.")

var errMemory = errs.Define("reproduce-memory",
	"the memory limit was reached while {activity}; allow more memory with --memory",
	"The run is long, or --memory is small.",
	"Allow more memory with --memory, or solve only the last part of the run with --checkpoint auto.")

// Activities that take time and memory, for errTimeout and errMemory.
const (
	readingPaths       = "the paths of the threads were read"
	startingAnew       = "the run was repeated up to its second thread"
	comingToCheckpoint = "the run was repeated up to a checkpoint"
	followingPaths     = "the threads were followed along their paths"
	runningPlan        = "the program ran under the schedule"
	executingPaths     = "the program was executed along the paths of its threads"
)

// limiter bounds an attempt.
type limiter struct {
	ctx      context.Context
	now      func() time.Time
	deadline time.Time // zero: none
	memory   uint64    // bytes of this process; 0: no bound
}

func newLimiter(ctx context.Context, o *Options) *limiter {
	l := &limiter{ctx: ctx, now: o.Now, memory: o.Memory}
	if o.Timeout > 0 {
		l.deadline = o.Now().Add(o.Timeout)
	}
	return l
}

// shareOf is a limiter for one of several attempts: with half of the time that is left, or
// all for the last one.
func (l *limiter) shareOf(last bool) *limiter {
	part := *l
	if left := l.timeLeft(); left > 0 && !last {
		part.deadline = l.now().Add(left / 2)
	}
	return &part
}

// symbolicShare is a limiter for the symbolic trace before a search by execution: with half of the time that is left and
// half of the memory, or all if no search follows.
func (l *limiter) symbolicShare(last bool) *limiter {
	part := l.shareOf(last)
	if !last {
		part.memory /= 2
	}
	return part
}

// releaseMemory gives memory that is no longer used back to the host if there is more than half of the limit's.
func (l *limiter) releaseMemory() {
	if l.memory > 0 && residentBytes() > l.memory/2 {
		debug.FreeOSMemory()
	}
}

// isTimeOver reports whether the time is over, or the work is cancelled.
func (l *limiter) isTimeOver() bool {
	return l.ctx.Err() != nil || !l.deadline.IsZero() && l.now().After(l.deadline)
}

// isReached reports whether a limit of time or of memory is reached.
func (l *limiter) isReached() bool { return l.reachedLimit() != "" }

// timeLeft is the time that is left, at least a millisecond; 0: there is no bound.
func (l *limiter) timeLeft() time.Duration {
	if l.deadline.IsZero() {
		return 0
	}
	return max(l.deadline.Sub(l.now()), time.Millisecond)
}

// limitError returns the error of an activity: that a limit was reached, if one was.
func (l *limiter) limitError(err error, activity string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(l.ctx.Err(), context.Canceled):
		return l.ctx.Err()
	case l.isTimeOver():
		return errTimeout.New(activity)
	case l.isReached():
		return errMemory.New(activity)
	}
	return err
}

// watchInterval is how often limits are looked at while the solver works.
const watchInterval = 20 * time.Millisecond

// watchLimits sends an interrupt now and then once a limit is reached, until it is ended; it
// then says which one it was, if any.
func (l *limiter) watchLimits() (interrupts <-chan struct{}, end func() string) {
	sent, done, limit := make(chan struct{}), make(chan struct{}), ""
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		ticker := time.NewTicker(watchInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if now := l.reachedLimit(); now != "" {
				limit = now
				select {
				case sent <- struct{}{}:
				case <-done:
					return
				}
			}
		}
	}()
	return sent, func() string {
		close(done)
		group.Wait()
		if limit == "" {
			limit = l.reachedLimit()
		}
		return limit
	}
}

// Limits that an Outcome names.
const (
	LimitTime   = "time"
	LimitMemory = "memory"
)

// reachedLimit is the limit that is reached, or empty.
func (l *limiter) reachedLimit() string {
	switch {
	case l.isTimeOver():
		return LimitTime
	case l.memory > 0 && residentBytes() > l.memory:
		return LimitMemory
	}
	return ""
}

// residentBytes is the memory that this process has, in bytes (proc(5), statm).
func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * arch.PageSize
}
