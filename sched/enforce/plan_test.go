package enforce

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// TestInstrumentation: slot() is called at each arrival at an instruction of a constraint up to the constraint,
// once for a wait in a spin loop, and at every instruction where arrivals are not known. Branches since the action before
// are known but after a spin loop.
func TestInstrumentation(t *testing.T) {
	second := func(done int, instructions, occurrence, spins uint64, pc uint64) event.Constraint {
		p := event.Point{Thread: 0, Done: done, Instructions: instructions, Occurrence: occurrence, Spins: spins, Span: 1, Branches: instructions / 5}
		if p.PC = 0x400; pc != 0 {
			p.PC += 4
		}
		return event.Constraint{First: event.Point{Thread: 1, PC: 0x500, Span: 1}, Second: p}
	}
	s := &event.Schedule{
		Threads:    []string{"1", "1.1"},
		Operations: []event.Operation{{Thread: 0, Part: event.WholePart}},
		Constraints: []event.Constraint{
			second(0, 100, 3, 0, 0), second(0, 150, 2, 0, 1), second(0, 1000, 303, 295, 0), // 3, 2, and 8 less 3
			second(1, 50, 4, 0, 0), second(1, 80, 0, 0, 1), // 4 after the operation, and 30 instructions with 6 branches
		},
	}
	p := NewPlan(s, false)
	for i, want := range []instrumentation{{arrivals: 3, branches: 20}, {arrivals: 2, branches: 10}, {arrivals: 5}, {arrivals: 4, branches: 10}, {slots: 30, branches: 6}} {
		if got := p.work[0][i]; got != want {
			t.Errorf("action %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestHandOverOfRuns: of three operations of a thread, one after the other, only the first waits for the turn, and four
// arrivals at an instruction are counted down to one call of slot().
func TestHandOverOfRuns(t *testing.T) {
	s := &event.Schedule{
		Threads:    []string{"1", "1.1"},
		Operations: make([]event.Operation, 3),
		Constraints: []event.Constraint{{
			First:  event.Point{Thread: 1, PC: 0x500, Span: 1},
			Second: event.Point{Done: 3, PC: 0x400, Instructions: 100, Occurrence: 4, Span: 1},
		}},
	}
	for i := range s.Operations {
		s.Operations[i] = event.Operation{Part: event.WholePart, Op: event.OpMutexTryLock}
	}
	costs := RelayCosts{Sync: 1, SemaphoreWait: 100, SlotCheck: 10_000, SlotCall: 1_000_000}
	for _, c := range []struct {
		runs bool
		want arch.Cycles
	}{{false, 3*(1+100) + 4*1_000_000}, {true, 3*1 + 100 + 4*10_000 + 1_000_000}} {
		e, g := New(s, Options{Runs: c.runs, Costs: costs}), &sched.Gate{}
		point := sched.SyncPoint{Thread: 1, Name: "1", Kind: sched.AtStart}
		g.Ask(e, &point)
		for range s.Operations {
			point.Kind, point.Sync = sched.AtEnter, &event.Sync{Op: event.OpMutexTryLock}
			g.Ask(e, &point)
			point.Kind, point.Sync = sched.AtReturn, &event.Sync{Op: event.OpMutexTryLock, Phase: event.Return}
			g.Ask(e, &point)
		}
		point = sched.SyncPoint{Thread: 1, Name: "1", Kind: sched.AtInstruction, PC: 0x400, Instructions: 100}
		g.Ask(e, &point)
		if got := g.Counts().Charged; got != c.want {
			t.Errorf("runs %v: %d cycles, want %d", c.runs, got, c.want)
		}
	}
}
