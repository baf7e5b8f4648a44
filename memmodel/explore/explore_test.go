package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

const (
	sb = `X86_64 SB
{ }
 P0            | P1            ;
 movl $1,(x)   | movl $1,(y)   ;
 movl (y),%eax | movl (x),%eax ;
exists (0:rax=0 /\ 1:rax=0)
`
	mp = `X86_64 MP
{ }
 P0          | P1            ;
 movl $1,(x) | movl (y),%eax ;
 movl $1,(y) | movl (x),%ebx ;
exists (1:rax=1 /\ 1:rbx=0)
`
	iriw = `X86_64 IRIW
{ }
 P0          | P1          | P2            | P3            ;
 movl $1,(x) | movl $1,(y) | movl (x),%eax | movl (y),%eax ;
             |             | movl (y),%ebx | movl (x),%ebx ;
exists (2:rax=1 /\ 2:rbx=0 /\ 3:rax=1 /\ 3:rbx=0)
`
	spin = `X86_64 spin
{ }
 P0          | P1               ;
 movl $1,(x) | L: cmpl $1,(y)   ;
 movl $1,(y) | jne L            ;
             | movl (x),%eax    ;
exists (1:rax=0)
`
)

func load(t testing.TB, text string) (*litmus.Test, []litmus.Code) {
	t.Helper()
	test, err := litmus.Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	code, err := litmus.Assemble([]*litmus.Test{test})
	if err != nil {
		t.Fatal(err)
	}
	return test, code[0]
}

func newMachine(t testing.TB) *Machine {
	t.Helper()
	m, err := NewMachine(engines.Auto)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// TestStoreBuffering counts by hand: under SC the interleavings of two threads
// of two instructions that differ in an order of accesses to one place.
func TestStoreBuffering(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, sb)
	for _, c := range []struct {
		model    memmodel.Model
		outcomes int
	}{{memmodel.SC, 3}, {memmodel.TSO, 4}, {memmodel.PSO, 4}} {
		full, err := m.Explore(test, code, Options{Model: c.model, Full: true})
		if err != nil {
			t.Fatal(err)
		}
		if full.Outcomes.Len() != c.outcomes {
			t.Errorf("%v: %d outcomes, want %d", c.model, full.Outcomes.Len(), c.outcomes)
		}
		if c.model == memmodel.SC && full.Stats.Executions != 6 {
			t.Errorf("%d interleavings, want 4!/(2!2!) = 6", full.Stats.Executions)
		}
		// Under TSO each thread has three steps, store, load, commit, of which
		// the last two come in either order.
		if c.model == memmodel.TSO && full.Stats.Executions != 80 {
			t.Errorf("%d executions, want 6!/(3!3!)*2*2 = 80", full.Stats.Executions)
		}
	}
}

func TestWitnessEndsInItsOutcome(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, sb)
	r, err := m.Explore(test, code, Options{Model: memmodel.TSO})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(r.Witness(litmus.State{0, 0}))
	for _, place := range []string{"x", "y"} {
		if strings.Index(got, "commit "+place) < strings.Index(got, "movl ("+place) {
			t.Errorf("the load of %s sees 0 after 1 was committed: %s", place, got)
		}
	}
	if r.Witness(litmus.State{5, 5}) != nil {
		t.Error("a witness of an impossible outcome")
	}
}

// TestLoops: a thread that waits for the other ends in every outcome, and the
// number of states stays finite.
func TestLoops(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, spin)
	for _, c := range []struct {
		model    memmodel.Model
		outcomes int
	}{{memmodel.SC, 1}, {memmodel.TSO, 1}, {memmodel.PSO, 2}} {
		r, err := m.Explore(test, code, Options{Model: c.model})
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcomes.Len() != c.outcomes || r.Stats.Executions != 0 {
			t.Errorf("%v: %d outcomes of %d executions, want %d of those without bound", c.model, r.Outcomes.Len(), r.Stats.Executions, c.outcomes)
		}
		walked, _, err := m.Walk(test, code, c.model, 200, 1)
		if err != nil || len(walked.Minus(r.Outcomes)) > 0 {
			t.Errorf("%v: random executions end elsewhere: %v", c.model, err)
		}
	}
}

func TestAccessOutsideLocations(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct{ code, want string }{
		{"movl (%rax),%ebx", "f: P0 accesses 0x0 in line 4, where the test has no location"},
		{"movl (x+100),%ebx", "f: P0 accesses 0x100064 in line 4, where the test has no location"},
		{"movq $1,(x+61)", "f: P0 accesses 0x10003d in line 4, where the test has no location"},
		{"movq $1,(x+4093)", "f: P0 accesses 0x101000 in line 4, where the test has no location"},
	} {
		test, code := load(t, "X86_64 T\n{ x=0; }\nP0;\n"+c.code+";\nexists true")
		_, err := m.Explore(test, code, Options{Model: memmodel.TSO})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s gives\n%v\nwant\n%s", c.code, err, c.want)
		}
	}
}

func TestTooManyStates(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, iriw)
	_, err := m.Explore(test, code, Options{Model: memmodel.TSO, MaxStates: 10})
	if want := "f: the test has more than 10 states"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestMemoIsExact compares with a machine that remembers nothing.
func TestMemoIsExact(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, iriw)
	r, err := m.Explore(test, code, Options{Model: memmodel.PSO})
	if err != nil {
		t.Fatal(err)
	}
	if r.Stats.Remembered < 2*r.Stats.Instructions {
		t.Errorf("%d instructions were run and %d remembered", r.Stats.Instructions, r.Stats.Remembered)
	}
	p := r.explorer.program
	for id := range p.infos {
		n := &p.infos[id]
		if n.done {
			continue
		}
		for key, want := range n.memo {
			view := make([]byte, len(test.Memory()))
			for _, s := range n.loads {
				key = key[copy(view[s.at:s.at+s.size], key):]
			}
			e, fault := m.executeAt(n.regs, view)
			if fault >= 0 || e.regs != p.infos[want.next].regs || len(e.stores) != len(want.stores) {
				t.Errorf("instruction %d of P%d does something else the second time", n.index, n.thread)
			}
		}
	}
}

func benchmark(b *testing.B, text string, model memmodel.Model) {
	m := newMachine(b)
	test, code := load(b, text)
	executions := uint64(0)
	for b.Loop() {
		r, err := m.Explore(test, code, Options{Model: model})
		if err != nil {
			b.Fatal(err)
		}
		executions += r.Stats.Executions
	}
	b.ReportMetric(float64(executions)/b.Elapsed().Seconds(), "executions/s")
}

func BenchmarkSB(b *testing.B) { benchmark(b, sb, memmodel.TSO) }

func BenchmarkMP(b *testing.B) { benchmark(b, mp, memmodel.TSO) }

func BenchmarkIRIW(b *testing.B) { benchmark(b, iriw, memmodel.TSO) }

// TestLongBuffers: more stores wait than a byte can count.
func TestLongBuffers(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, "X86_64 T\n{ x=0; y=0; }\nP0|P1;\n"+strings.Repeat("movl $1,(x)|;\n", 300)+"movl $2,(x)|movl (x),%eax;\nforall ([x]=2)")
	r, err := m.Explore(test, code, Options{Model: memmodel.TSO})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Outcomes.Verdict(); !v.OK || r.Outcomes.Len() != 1 {
		t.Errorf("%d outcomes, OK %v", r.Outcomes.Len(), v.OK)
	}
}
