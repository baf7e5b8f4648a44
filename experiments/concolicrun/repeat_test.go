package concolicrun_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// A run recorded for a schedule is executed from its trace alone: accesses, and the
// positions of system calls and operations, agree with the trace.
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
	c := machine.DefaultConfig()
	c.Args, c.Dir = []string{"pigz", "-c", "-p2", data}, filepath.Dir(name)
	c.Stdin, c.Stdout, c.Control = bytes.NewReader(nil), new(bytes.Buffer), dmt.Control{Policy: dmt.FCFS}
	c.Record = peregrine.RecordConfig(file)
	if _, err := machine.Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	f, err := concolicrun.Repeat(context.Background(), name, func(*machine.Config) (concolicrun.Options, error) {
		return concolicrun.Options{
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
		gaps := func(x touchedByte) bool { return helpers[x.pc] }
		sameAccesses(t, sortRuns(slices.DeleteFunc(have, gaps)), sortRuns(slices.DeleteFunc(accesses[th.ID], gaps)))
	}
	samePositions(t, name, tr)
}

// samePositions compares the positions of events: a system call is directly after its
// instruction, and an operation of the C library directly after the call that returns to
// the recorded address.
func samePositions(t *testing.T, name string, tr *blocktrace.Trace) {
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
			continue // an operation inside a library
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
		if e.Kind == blocktrace.Call {
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

func threadOf(tr *blocktrace.Trace, id arch.ThreadID) *blocktrace.Thread {
	for _, th := range tr.Threads {
		if th.ID == id {
			return th
		}
	}
	return nil
}

// endOf returns the ends of the last instructions before a position: a call through the PLT
// is a call and jumps.
func endOf(th *blocktrace.Thread, at uint64) (ends []uint64) {
	c := th.Cursor(th.StepAt(at))
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
