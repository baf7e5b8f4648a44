package study

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Choice says which run of a program is recorded: the first one, from the seed on,
// of which it is true.
type Choice string

// The choices.
const (
	AnyRun     Choice = ""        // the first
	RaceOpen   Choice = "open"    // the order of operations leaves a race of the program's description open
	NoRaceOpen Choice = "settled" // it leaves none of them open
)

// UnmarshalText accepts the choices.
func (c *Choice) UnmarshalText(text []byte) error {
	*c = Choice(text)
	if *c == AnyRun || *c == RaceOpen || *c == NoRaceOpen {
		return nil
	}
	return fmt.Errorf("%s or %s", RaceOpen, NoRaceOpen)
}

// isFulfilledBy reports whether a recorded run is one of the choice.
func (c Choice) isFulfilledBy(ctx context.Context, r *RecordedRun) (bool, error) {
	if c == AnyRun {
		return true, nil
	}
	f, err := peregrine.ComputeFile(ctx, r.Trace(), peregrine.Options{Prune: hybrid.PruneNone})
	if err != nil {
		return false, err
	}
	return !contendsInLibrary(f) && leavesOpen(r.Program, f) == (c == RaceOpen), nil
}

// leavesOpen reports whether a hybrid schedule has a constraint between two lines of a race of the
// program's description: then the order of operations alone leaves that race open.
func leavesOpen(p suite.Program, f *hybrid.File) bool {
	return slices.ContainsFunc(f.Notes, func(note string) bool { return isBetweenRaceLines(p, note) })
}

// isBetweenRaceLines reports whether a constraint with that note is between two lines of a race of
// the program's description.
func isBetweenRaceLines(p suite.Program, note string) bool {
	first, second, _ := strings.Cut(note, " -> ")
	return slices.ContainsFunc(p.Races, func(r suite.Race) bool {
		return slices.Contains(r.Lines, first) && slices.Contains(r.Lines, second)
	})
}

// contendsInLibrary reports whether a thread of a recorded run waited for a lock of the C library
// itself, such as that of malloc's arenas. A sync-schedule does not order its operations, but it
// orders the system call, so that a run under the sync-schedule would leave it where the lock
// happens to be free.
func contendsInLibrary(f *hybrid.File) bool {
	return slices.ContainsFunc(f.Schedule.Operations, func(o event.Operation) bool {
		return o.Part == event.SystemCall && o.Number == unix.SYS_FUTEX
	})
}
