package follow_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/path"
	sym "github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/experiments/schedules"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// A run that was recorded for a schedule is followed from its trace alone: accesses,
// and the places of system calls and operations are those that the trace has.
func TestRepeat(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data := filepath.Join(filepath.Dir(name), "data")
	if err := os.WriteFile(data, bytes.Repeat([]byte("three\n1.5 apples\n-2 pears\n"), 30), 0o600); err != nil {
		t.Fatal(err)
	}
	c := heddle.DefaultConfig()
	c.Args, c.Dir = []string{"pigz", "-c", "-p2", data}, filepath.Dir(name)
	c.Stdin, c.Stdout, c.Control = bytes.NewReader(nil), new(bytes.Buffer), sched.Control{Policy: sched.FCFS}
	c.Record = schedules.Recording(file)
	if _, err := heddle.Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	f, err := follow.Repeat(context.Background(), name, func(*heddle.Config) (follow.Options, error) {
		return follow.Options{
			Choose: func(e *event.Input) bool { return e.Name == data }, Check: true, Summaries: sym.DefaultSummaries(), Path: true,
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr := f.Path.Trace()
	if len(tr.Threads) < 3 || len(f.Executor.Symbols()) != 26*30 {
		t.Errorf("%d threads, %d symbols", len(tr.Threads), len(f.Executor.Symbols()))
	}
	accesses := storedAccesses(t, name)
	for _, th := range tr.Threads {
		_, have, helpers := pathOf(th)
		gaps := func(x touched) bool { return helpers[x.pc] }
		sameAccesses(t, runs(slices.DeleteFunc(have, gaps)), runs(slices.DeleteFunc(accesses[th.ID], gaps)))
	}
	samePlaces(t, name, tr)
}

// samePlaces compares the places of events: a system call comes right behind the
// instruction, and a function of the C library's right behind the call that returns
// to where the trace says.
func samePlaces(t *testing.T, name string, tr *path.Trace) {
	t.Helper()
	r, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	calls := 0
	for s, err := range trace.Get[event.Sync](r, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Phase != event.Enter || s.PC == 0 || s.Effects&event.Inner != 0 || s.PC >= 0x7000_0000_0000 {
			continue // but for those of the program itself
		}
		calls++
		if end := endOf(threadOf(tr, s.Thread), s.Instructions); !slices.Contains(end, uint64(s.PC)) {
			t.Errorf("%v of thread %d at instruction %d returns to %#x, the instructions before end at %#x", s.Op, s.Thread, s.Instructions, s.PC, end)
		}
	}
	if calls < 20 {
		t.Errorf("%d operations", calls)
	}
	var have, want []uint64
	for _, e := range tr.Events {
		if e.Kind == path.Call {
			have = append(have, uint64(e.Thread)<<32|e.At, e.Number)
		}
	}
	for s, err := range trace.Get[event.Syscall](r, trace.Key{Kind: trace.Syscalls}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Phase == event.Enter || s.Phase == event.Whole {
			want = append(want, uint64(s.Thread)<<32|s.Instructions, s.Number)
		}
	}
	if !slices.Equal(have, want) || len(want) < 50 {
		t.Errorf("system calls %x, the trace has %x", have, want)
	}
}

func threadOf(tr *path.Trace, id event.ThreadID) *path.Thread {
	for _, th := range tr.Threads {
		if th.ID == id {
			return th
		}
	}
	return nil
}

// endOf is where the last instructions before a place end: a call through the PLT is
// a call and jumps.
func endOf(th *path.Thread, at uint64) (ends []uint64) {
	c := th.Cursor(th.Find(at))
	for range 4 {
		if !c.Prev() {
			break
		}
		for _, s := range c.Block.Stmts[:c.Done] {
			if m, ok := s.(*vex.Mark); ok {
				ends = append(ends, m.Addr+uint64(m.Len))
			}
		}
	}
	return ends
}
