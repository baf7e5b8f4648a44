package enforce

import (
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestInstrumentation: slot() is called at each arrival at an instruction of a constraint up to the constraint,
// once for a wait in a spin loop, and at every instruction where arrivals are not known.
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
	for i, want := range []instrumentation{{3, 0}, {2, 0}, {5, 0}, {4, 0}, {30, 6}} {
		if got := p.work[0][i]; got != want {
			t.Errorf("action %d: %+v, want %+v", i, got, want)
		}
	}
}
