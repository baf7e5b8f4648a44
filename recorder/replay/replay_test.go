package replay

import (
	"bytes"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// twoCores is the state that a Tracker reads.
type twoCores struct {
	on    [2]arch.ThreadID
	clock [2]arch.Cycles
}

func (c *twoCores) Cores() int                     { return 2 }
func (c *twoCores) On(k arch.CoreID) arch.ThreadID { return c.on[k] }
func (c *twoCores) Now(k arch.CoreID) arch.Cycles  { return c.clock[k] }
func (c *twoCores) Makespan() arch.Cycles          { return max(c.clock[0], c.clock[1]) }
func (c *twoCores) Switches() uint64               { return 7 }

func TestTrackerNotesWhatChanges(t *testing.T) {
	tracker := NewTracker(2)
	c := &twoCores{on: [2]arch.ThreadID{1000, arch.NoThread}}
	tracker.Quantum(1000, 0, c)
	tracker.Ran(arch.Stop{Reason: arch.StopSyscall, Instructions: 12}, 30)
	tracker.Syscall(1000, 39, [6]uint64{}, 1000)
	first := tracker.Done()
	if len(first.Cores) != 1 || first.Cores[0] != (event.CoreState{Core: 0, Thread: 1000}) || first.Budget ||
		first.Stop != uint8(arch.StopSyscall) || first.Instructions != 12 || first.After != 30 || first.Check == 0 {
		t.Errorf("first decision %+v", first)
	}
	c.clock[0] = 330
	tracker.Timer(500, c)
	if d := tracker.Done(); d.Kind != event.DecideTimer || d.Time != 500 || len(d.Cores) != 1 || d.Cores[0].Clock != 330 || d.Check != 0 {
		t.Errorf("timer %+v", d)
	}
	c.on[1], c.clock[1] = 1001, 500
	tracker.Quantum(1001, 1, c)
	tracker.Ran(arch.Stop{Reason: arch.StopSync, Instructions: 5}, 505)
	if d := tracker.Done(); !d.Budget || d.Stop != 0 || len(d.Cores) != 1 || d.Cores[0].Core != 1 {
		t.Errorf("slice to a sync point %+v", d)
	}
	if d := tracker.End(c); d.Kind != event.DecideEnd || d.Time != 500 || d.Instructions != 7 {
		t.Errorf("end %+v", d)
	}
}

func TestDifferenceSaysWhat(t *testing.T) {
	c := &twoCores{on: [2]arch.ThreadID{1000, arch.NoThread}}
	step := func() (*Tracker, event.Decision) {
		tracker := NewTracker(2)
		tracker.Quantum(1000, 0, c)
		tracker.Ran(arch.Stop{Reason: arch.StopSyscall, Instructions: 12}, 30)
		tracker.Syscall(1000, 39, [6]uint64{}, 1000)
		return tracker, tracker.Done()
	}
	for _, x := range []struct {
		change func(*event.Decision)
		want   string
	}{
		{func(*event.Decision) {}, ""},
		{func(d *event.Decision) { d.Instructions = 13 }, "it ran 12 instructions, not 13"},
		{func(d *event.Decision) { d.Budget, d.Stop = true, 0 }, "it was ended by a system call, not by its budget"},
		{func(d *event.Decision) { d.Stop = uint8(arch.StopPause) }, "it was ended by a system call, not by a pause"},
		{func(d *event.Decision) { d.Check++ }, "system calls, signals or their results differ; the last was getpid = 1000"},
	} {
		tracker, d := step()
		x.change(&d)
		got := tracker.Difference(4, &d)
		if x.want != "" {
			x.want = "decision 4, thread 1000 on core 0 at cycle 0: " + x.want
		}
		if got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// TestLogReadsAnywhere: decisions are read by number across chunks and timelines,
// in any order, and damage is remembered.
func TestLogReadsAnywhere(t *testing.T) {
	var file bytes.Buffer
	w := trace.NewWriter(&file)
	s := w.Stream(trace.Decisions, 0)
	put := func(n int) { trace.Put(s, &event.Decision{Time: arch.Cycles(n), Thread: 1000}) }
	for n := range 25 {
		put(n)
		if n%10 == 9 {
			w.Flush()
		}
	}
	m := w.Mark()
	put(1000)
	w.Return(m)
	for n := 25; n < 60; n++ {
		put(n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader("t", bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	log := NewLog(r)
	for _, n := range []uint64{0, 59, 9, 10, 24, 25, 26, 1, 40} {
		if d, ok := log.Decision(n); !ok || d.Time != arch.Cycles(n) {
			t.Errorf("decision %d is %+v, %v", n, d, ok)
		}
	}
	if d, ok := log.Decision(60); ok || log.Err() != nil {
		t.Errorf("decision 60 is %+v (%v)", d, log.Err())
	}
	damaged := bytes.Clone(file.Bytes())
	at := r.Chunks(trace.Key{Kind: trace.Decisions})[1]
	damaged[at.Offset+at.Size()-20] ^= 1
	r, err = trace.NewReader("t", bytes.NewReader(damaged), int64(len(damaged)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	log = NewLog(r)
	if _, ok := log.Decision(12); ok || log.Err() == nil || !strings.Contains(log.Err().Error(), "damaged") {
		t.Errorf("a damaged chunk: %v, %v", ok, log.Err())
	}
}
