package hybrid

import (
	"math"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// A listing is cut after a number of operations and constraints, and says how many it leaves out.
func TestWriteLines(t *testing.T) {
	f := &File{Schedule: &event.Schedule{Threads: []string{"1"}, Operations: make([]event.Operation, 100), Constraints: make([]event.Constraint, 7)}}
	for most, want := range map[int]string{
		10:          "and 90 operations and 0 constraints more",
		5:           "and 95 operations and 2 constraints more",
		100:         "",
		math.MaxInt: "",
	} {
		var out strings.Builder
		if err := f.WriteLines(&out, most); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if n := min(most, 100) + min(most, 7); want == "" && len(lines) != n || want != "" && (len(lines) != n+1 || lines[n] != want) {
			t.Errorf("%d: %d lines, the last one %q", most, len(lines), lines[len(lines)-1])
		}
	}
}

// A summary names the threads that get signals in waits on conditions, and no others.
func TestSignalsInWaits(t *testing.T) {
	signal := event.Operation{Thread: 1, Part: event.SignalPart, Result: event.Interrupted}
	f := &File{Kind: "sync", Schedule: &event.Schedule{Threads: []string{"1", "1.1"}, Operations: []event.Operation{
		{Thread: 1, Part: event.BeginPart, Op: event.OpCondWait},
		{Part: event.WholePart, Op: event.OpMutexLock},
		signal, signal,
		{Thread: 1, Part: event.EndPart, Op: event.OpCondWait},
		signal,
	}}}
	var out strings.Builder
	if err := f.WriteSummary(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "thread 1.1 gets 2 signals in waits on conditions") || strings.Contains(text, "thread 1 gets") {
		t.Errorf("the summary is\n%s", text)
	}
}
