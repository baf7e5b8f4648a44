package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// A run that may hang counts as hanging when it has used hangLimit of processor time, when no
// thread of it has been ready for idleLimit, or when none has used a processor for longer than
// a tick for restLimit: the run-time of TSan has a thread that polls ten times a second. None
// of them depends on the host's speed or load, as long as it runs the test at all.
const (
	hangLimit = 8 * time.Second
	idleLimit = 2 * time.Second
	restLimit = 6 * time.Second
	restSoon  = 300 * time.Millisecond
	watchStep = 100 * time.Millisecond
	tick      = time.Second / 100 // of the times in /proc; see proc(5) and sysconf(3)
)

// waitForHang waits until the processes of a group hang, and reports whether they did before
// ctx was done. It calls atRest once none has used a processor for a while, so that another
// program can run meanwhile.
func waitForHang(ctx context.Context, group int, limit time.Duration, atRest func()) bool {
	var idle, rest, usedBefore time.Duration
	var before string
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(watchStep):
		}
		used, switches, wanted := processorUse(group)
		if idle += watchStep; wanted || switches != before {
			idle = 0
		}
		if rest += watchStep; wanted || used != usedBefore {
			rest = 0
		}
		before, usedBefore = switches, used
		if rest >= restSoon {
			atRest()
		}
		if used > limit || idle >= idleLimit || rest >= restLimit {
			return ctx.Err() == nil
		}
	}
}

// processorUse is the processor time that a group's processes have used so far, how often
// each thread has given a processor back, and whether one runs, waits for a processor or
// for a disk. A thread that slept and ran for less than a tick shows only in the second.
func processorUse(group int) (used time.Duration, switches string, wanted bool) {
	processes, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, process := range processes {
		f := statFields(process)
		// State, parent, group; the times are fields 14 to 17 of proc(5).
		if len(f) < 15 || f[2] != strconv.Itoa(group) {
			continue
		}
		for _, field := range f[11:15] {
			n, _ := strconv.ParseInt(field, 10, 64)
			used += time.Duration(n) * tick
		}
		threads, _ := filepath.Glob(filepath.Dir(process) + "/task/*")
		for _, thread := range threads {
			if f := statFields(filepath.Join(thread, "stat")); len(f) > 0 && (f[0] == "R" || f[0] == "D") {
				wanted = true
			}
			status, _ := os.ReadFile(filepath.Join(thread, "status")) // nothing, if it has ended
			_, counts, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
			switches += thread + counts
		}
	}
	return used, switches, wanted
}

// statFields are the fields of a stat file from the state on; none if the process has
// ended.
func statFields(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	return strings.Fields(rest)
}

// TestHangsAreNoticed: a program that sleeps for good and one that loops for good count
// as hanging, and one that takes its time does not.
func TestHangsAreNoticed(t *testing.T) {
	testsize.SkipQuick(t)
	for script, want := range map[string]bool{
		"sleep 1000": true, "while :; do :; done": true,
		"sleep 0.5; sleep 0.5; sleep 0.5; sleep 0.5; sleep 0.5; sleep 0.5": false,
		"exec perl -e 'select undef, undef, undef, 0.5 for 1..6'":          false, // within one process
		"exec perl -e 'select undef, undef, undef, 0.1 while 1'":           true,  // as TSan's thread does
	} {
		t.Run(fmt.Sprint(want, " ", script), func(t *testing.T) {
			t.Parallel()
			if r := run(t, time.Second/2, nil, "sh", "-c", script); r.timedOut != want {
				t.Errorf("%v", r)
			}
		})
	}
}
