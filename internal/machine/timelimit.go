package machine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TimeLimit bounds how long a run may take on the host. It is the cause of a context
// whose time is up; a run that such a context ends has the outcome OutcomeTimeLimit. Where it
// ends depends on the host's speed and not on its inputs alone; a recording of it replays to the
// same place.
type TimeLimit time.Duration

func (l TimeLimit) Error() string {
	return fmt.Sprintf("the time limit of %v is reached", time.Duration(l))
}

// WithTimeLimit returns a context that a limit ends; 0 means no limit.
func WithTimeLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, TimeLimit(limit))
}

// ReachedTimeLimit returns the limit that has ended a context, if one has.
func ReachedTimeLimit(ctx context.Context) (limit TimeLimit, reached bool) {
	reached = errors.As(context.Cause(ctx), &limit)
	return limit, reached
}

// endFromOutside ends the run because a context is done, wherever it is.
func (m *Machine) endFromOutside(ctx context.Context) {
	m.endedFromOutside = true
	if limit, reached := ReachedTimeLimit(ctx); reached {
		m.end(OutcomeTimeLimit)
		m.result.Message = fmt.Sprintf("%v after %d instructions, which depends on the speed of the host",
			limit, m.state.digest.instructions)
		return
	}
	m.end(OutcomeInterrupted)
}
