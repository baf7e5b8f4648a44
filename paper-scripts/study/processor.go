package study

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is the processor time of this process so far, of all its threads: that of
// the garbage collector too, and whatever else the host does meanwhile.
func ProcessorTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// ProcessorTimeOf is the processor time that something takes.
func ProcessorTimeOf(do func() error) (time.Duration, error) {
	before, err := ProcessorTime()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := ProcessorTime()
	return after - before, err
}

// ProcessorClock is the processor time of this process as a clock, for times that do not depend on what else the host
// does.
func ProcessorClock() time.Time {
	spent, err := ProcessorTime()
	if err != nil {
		panic("bug: " + err.Error())
	}
	return time.Unix(0, 0).Add(spent)
}

// Seconds is a time as cells have it.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
