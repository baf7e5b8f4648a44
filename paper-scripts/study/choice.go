package study

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/guest/programs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Choice says which run of a program is recorded: the first one, from the seed on,
// of which it is true.
type Choice string

// The choices.
const (
	Whichever Choice = ""        // the first
	Open      Choice = "open"    // the order of operations leaves a race of the program's description open
	Settled   Choice = "settled" // it leaves none of them open
)

// UnmarshalText accepts the choices.
func (c *Choice) UnmarshalText(text []byte) error {
	*c = Choice(text)
	if *c == Whichever || *c == Open || *c == Settled {
		return nil
	}
	return fmt.Errorf("%s or %s", Open, Settled)
}

// fits tells whether a recorded run is one of the choice.
func (c Choice) fits(ctx context.Context, r *Recorded) (bool, error) {
	if c == Whichever {
		return true, nil
	}
	f, err := schedules.Compute(ctx, r.Trace(), schedules.Options{Prune: hybrid.PruneNone})
	if err != nil {
		return false, err
	}
	return !contends(f) && leavesOpen(r.Program, f) == (c == Open), nil
}

// leavesOpen tells whether a hybrid schedule has a constraint between two lines of
// a race of the program's description: then the order of operations alone leaves
// that race open.
func leavesOpen(p programs.Program, f *hybrid.File) bool {
	return slices.ContainsFunc(f.Notes, func(note string) bool { return between(p, note) })
}

// between tells whether a constraint with that note is between two lines of a race
// of the program's description.
func between(p programs.Program, note string) bool {
	first, second, _ := strings.Cut(note, " -> ")
	return slices.ContainsFunc(p.Races, func(r programs.Race) bool {
		return slices.Contains(r.Lines, first) && slices.Contains(r.Lines, second)
	})
}

// contends tells whether a thread of a recorded run waited for a lock of the C
// library itself, such as that of malloc's arenas. Its operations are not among
// those that a sync-schedule orders, but the system call is, so that a run under
// the sync-schedule would leave it where the lock happens to be free.
func contends(f *hybrid.File) bool {
	return slices.ContainsFunc(f.Schedule.Operations, func(o event.Operation) bool {
		return o.Part == event.SystemCall && o.Number == unix.SYS_FUTEX
	})
}
