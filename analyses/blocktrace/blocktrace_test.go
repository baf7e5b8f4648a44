package blocktrace_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/blocktrace/blocktracetest"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// The functions are written in assembly so that a reader sees every instruction, load and
// store.
const program = `
long numbers[4] = {5, 7, 9, 11};
long total;
__asm__(".intel_syntax noprefix\n"
	".globl add_up\n.type add_up, @function\n"
	"add_up:\n"            // rdi: how many numbers
	"  lea rsi, [numbers]\n"
	"next_number:\n"
	"  mov rax, [rsi]\n"   // load
	"  add [total], rax\n" // load, store
	"  add rsi, 8\n"
	"  dec rdi\n"
	"  jnz next_number\n"
	"  mov rax, [total]\n" // load
	"  ret\n"              // load
	".size add_up, . - add_up\n"
	".globl exchange\n.type exchange, @function\n"
	"exchange:\n"          // rdi: the value that is expected
	"  mov rax, rdi\n"
	"  mov rcx, 100\n"
	"  lock cmpxchg [total], rcx\n"
	"  ret\n"
	".size exchange, . - exchange\n"
	".att_syntax\n");
int main(void) { return 0; }
`

// walk describes the steps of a thread: the number of the first instruction, the number of
// instructions, loads and stores that happened.
func walk(th *blocktrace.Thread) (steps []string) {
	for c := th.Cursor(0); c.Next(); {
		steps = append(steps, describe(&c.Step))
	}
	return steps
}

func describe(s *blocktrace.Step) string {
	loads, stores := 0, 0
	for i, at := range s.Addrs {
		switch {
		case at == blocktrace.NoAddr:
		case s.Block.Sites[i].Store:
			stores++
		default:
			loads++
		}
	}
	return fmt.Sprintf("%d+%d loads %d stores %d", s.At, s.Instructions(), loads, stores)
}

// A loop of three rounds: every round is a step, the last one goes on to the return.
func TestStepsOfALoop(t *testing.T) {
	p := blocktracetest.Compile(t, program)
	if sum := p.Call(1, "add_up", 3); sum != 5+7+9 {
		t.Fatalf("the sum is %d", sum)
	}
	th := p.Log.Trace().Threads[0]
	// lea, mov, add, add, dec, jnz; mov, add, add, dec, jnz; again; mov, ret.
	want := []string{"0+6 loads 2 stores 1", "6+5 loads 2 stores 1", "11+5 loads 2 stores 1", "16+2 loads 2 stores 0"}
	if got := walk(th); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if th.Instructions() != 18 || th.Len() != len(want) {
		t.Errorf("%d instructions in %d steps", th.Instructions(), th.Len())
	}
	numbers, _ := p.Image.Variable(symbol(t, p, "numbers"))
	total, _ := p.Image.Variable(symbol(t, p, "total"))
	c := th.Cursor(1)
	c.Next()
	if got, want := c.Addrs, []uint64{numbers.Addr + 8, total.Addr, total.Addr}; !slices.Equal(got, want) {
		t.Errorf("the second round accesses %#x, want %#x", got, want)
	}
}

// symbol returns the address of a variable.
func symbol(t *testing.T, p *blocktracetest.Program, name string) uint64 {
	t.Helper()
	for at := p.Image.Low; at < p.Image.High; at += 8 {
		if y, ok := p.Image.Variable(at); ok && y.Name == name {
			return y.Addr
		}
	}
	t.Fatalf("no variable %s", name)
	return 0
}

// A cursor passes the same steps backwards, and finds the step of every instruction.
func TestCursorInBothDirections(t *testing.T) {
	p := blocktracetest.Compile(t, program)
	for range 400 { // more than a mark's steps
		p.Call(1, "add_up", 2)
	}
	th := p.Log.Trace().Threads[0]
	forwards := walk(th)
	var backwards []string
	for c := th.Cursor(th.Len()); c.Prev(); {
		backwards = append(backwards, describe(&c.Step))
	}
	slices.Reverse(backwards)
	if !slices.Equal(forwards, backwards) {
		t.Error("backwards, the steps are others")
	}
	at := uint64(0)
	for c := th.Cursor(0); c.Next(); at += uint64(c.Instructions()) {
		if c.At != at {
			t.Fatalf("step %d begins at instruction %d, want %d", c.Index, c.At, at)
		}
		for _, instruction := range []uint64{at, at + uint64(c.Instructions()) - 1} {
			if got := th.StepAt(instruction); got != c.Index {
				t.Fatalf("instruction %d is in step %d, want %d", instruction, got, c.Index)
			}
		}
	}
	if got := th.StepAt(at); got != th.Len() {
		t.Errorf("an instruction that was not executed is in step %d", got)
	}
	middle := th.Cursor(700)
	middle.Next()
	if got := describe(&middle.Step); got != forwards[700] {
		t.Errorf("step 700 is %q from its mark, %q from the start", got, forwards[700])
	}
}

// A compare-and-exchange has a store only where it succeeds.
func TestFailedExchangeHasNoStore(t *testing.T) {
	p := blocktracetest.Compile(t, program)
	p.Log.Values = true
	p.Call(1, "exchange", 3) // total is 0
	p.Call(1, "exchange", 0)
	p.Call(1, "exchange", 0)
	var stored []bool
	for c := p.Log.Trace().Threads[0].Cursor(0); c.Next(); {
		for i, s := range c.Block.Sites {
			if !s.Store {
				continue
			}
			stored = append(stored, c.Addrs[i] != blocktrace.NoAddr)
			if c.Addrs[i] != blocktrace.NoAddr && c.Values[i] != 100 {
				t.Errorf("%d is stored", c.Values[i])
			}
		}
	}
	if want := []bool{false, true, false}; !slices.Equal(stored, want) {
		t.Errorf("stored: %v, want %v", stored, want)
	}
}

// Pieces are the run in order; a piece without a step is not kept, and an event ends one.
func TestPieces(t *testing.T) {
	p := blocktracetest.Compile(t, program)
	p.Call(1, "add_up", 1)
	p.Log.BeginPiece(2, 0, 1) // executes nothing
	p.Call(2, "add_up", 2)
	p.Log.AddEvent(blocktrace.Event{Kind: blocktrace.Call, Thread: 2, Number: 60})
	p.Call(1, "add_up", 1)
	trace := p.Log.Trace()
	type piece struct {
		thread, first, count int
		at                   uint64
	}
	var got []piece
	for _, x := range trace.Pieces {
		got = append(got, piece{x.Thread, x.First, x.Count, x.At})
	}
	// A call with one round is one step to the branch and one to the return: 6 + 2
	// instructions; with two rounds it is three steps.
	want := []piece{{0, 0, 2, 0}, {1, 0, 3, 0}, {0, 2, 2, 8}}
	if !slices.Equal(got, want) {
		t.Errorf("pieces %v, want %v", got, want)
	}
	if e := trace.Events[0]; e.Piece != 2 || e.At != 13 {
		t.Errorf("the event is after %d pieces and %d instructions of its thread", e.Piece, e.At)
	}
	if ids := []arch.ThreadID{trace.Threads[0].ID, trace.Threads[1].ID}; !slices.Equal(ids, []arch.ThreadID{1, 2}) {
		t.Errorf("threads %v", ids)
	}
	if x := trace.Threads[0].PieceOf(3); x != &trace.Pieces[2] {
		t.Error("the last step of the first thread is in another piece")
	}
}
