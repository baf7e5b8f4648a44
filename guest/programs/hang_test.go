package programs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hangLimit is the processor time after which a run that may hang counts as one that
// does, as does one of which no thread has wanted a processor for idleLimit. Neither
// depends on what else the host does, as long as it runs the test at all.
const (
	hangLimit = 8 * time.Second
	idleLimit = 2 * time.Second
	watchStep = 100 * time.Millisecond
	tick      = time.Second / 100 // of the times in /proc; see proc(5) and sysconf(3)
)

// waitForHang waits until the processes of a group hang. It is false when ctx is done.
func waitForHang(ctx context.Context, group int, limit time.Duration) bool {
	idle, before := time.Duration(0), time.Duration(-1)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(watchStep):
		}
		used, wanted := processorTime(group)
		if idle += watchStep; wanted || used != before {
			idle = 0
		}
		if before = used; used > limit || idle >= idleLimit {
			return ctx.Err() == nil
		}
	}
}

// processorTime is what a group's processes have used so far, and whether one of their
// threads runs, waits for a processor or for a disk.
func processorTime(group int) (used time.Duration, wanted bool) {
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
		threads, _ := filepath.Glob(filepath.Dir(process) + "/task/*/stat")
		for _, thread := range threads {
			if f := statFields(thread); len(f) > 0 && (f[0] == "R" || f[0] == "D") {
				wanted = true
			}
		}
	}
	return used, wanted
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
	for script, want := range map[string]bool{
		"sleep 1000": true, "while :; do :; done": true, "sleep 0.5; sleep 0.5; sleep 0.5; sleep 0.5; sleep 0.5; sleep 0.5": false,
	} {
		t.Run(fmt.Sprint(want, " ", script), func(t *testing.T) {
			t.Parallel()
			if r := run(t, time.Second/2, nil, "sh", "-c", script); r.timedOut != want {
				t.Errorf("%v", r)
			}
		})
	}
}
