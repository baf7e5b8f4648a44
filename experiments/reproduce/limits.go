package reproduce

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errTimeout = errs.Define("reproduce-timeout",
	"the time was over while {doing}",
	"The run is long, or --timeout is short.",
	"Give it more time with --timeout.")

var errMemory = errs.Define("reproduce-memory",
	"the limit of memory was reached while {doing}",
	"The run is long, or --memory is small.",
	"Allow more with --memory.")

// What takes time and memory, for errTimeout and errMemory.
const (
	readingPaths       = "the paths of the threads were read"
	startingAnew       = "the program ran up to its second thread"
	comingToCheckpoint = "the recorded run was repeated up to a checkpoint"
	followingPaths     = "the threads were followed along their paths"
	runningPlan        = "the program ran under the schedule"
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

// share is a limiter for one of several attempts: with half of the time that is left, or
// all for the last one.
func (l *limiter) share(last bool) *limiter {
	part := *l
	if left := l.left(); left > 0 && !last {
		part.deadline = l.now().Add(left / 2)
	}
	return &part
}

// over tells that the time is over, or the work is not wanted any more.
func (l *limiter) over() bool {
	return l.ctx.Err() != nil || !l.deadline.IsZero() && l.now().After(l.deadline)
}

// stop tells that a limit is reached, that of time or that of memory.
func (l *limiter) stop() bool { return l.reached() != "" }

// left is the time that is left, at least a millisecond; 0: there is no bound.
func (l *limiter) left() time.Duration {
	if l.deadline.IsZero() {
		return 0
	}
	return max(l.deadline.Sub(l.now()), time.Millisecond)
}

// timely is the error of what took time or memory: that a limit was reached, if it was.
func (l *limiter) timely(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(l.ctx.Err(), context.Canceled):
		return l.ctx.Err()
	case l.over():
		return errTimeout.Wrap(err, doing)
	case l.stop():
		return errMemory.Wrap(err, doing)
	}
	return err
}

// patrol is how often limits are looked at while the solver works.
const patrol = 20 * time.Millisecond

// watch sends an interrupt now and then once a limit is reached, until it is ended; it
// then says which one it was, if any.
func (l *limiter) watch() (interrupts <-chan struct{}, end func() string) {
	sent, done, limit := make(chan struct{}), make(chan struct{}), ""
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		ticker := time.NewTicker(patrol)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if now := l.reached(); now != "" {
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
			limit = l.reached()
		}
		return limit
	}
}

// Limits that an Outcome names.
const (
	LimitTime   = "time"
	LimitMemory = "memory"
)

// reached is the limit that is reached, or empty.
func (l *limiter) reached() string {
	switch {
	case l.over():
		return LimitTime
	case l.memory > 0 && resident() > l.memory:
		return LimitMemory
	}
	return ""
}

// resident is the memory that this process has, in bytes (proc(5), statm).
func resident() uint64 {
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
	return pages * emu.PageSize
}
