package explore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// The bytes 63 and 64 of t lie in two cache lines.
const (
	tornStore = `X86_64 torn-store
{ char t[65]; }
 P0               | P1               ;
 movw $257,(t+63) | movb (t+63),%al  ;
                  | movb (t+64),%bl  ;
locations [1:rax; 1:rbx;]
exists true
`
	tornStoreReversed = `X86_64 torn-store-reversed
{ char t[65]; }
 P0               | P1               ;
 movw $257,(t+63) | movb (t+64),%bl  ;
                  | movb (t+63),%al  ;
locations [1:rax; 1:rbx;]
exists true
`
	tornLoad = `X86_64 torn-load
{ char t[65]; }
 P0              | P1               ;
 movb $1,(t+63)  | movw (t+63),%ax  ;
 movb $1,(t+64)  |                  ;
locations [1:rax;]
exists true
`
	tornLoadReversed = `X86_64 torn-load-reversed
{ char t[65]; }
 P0              | P1               ;
 movb $1,(t+64)  | movw (t+63),%ax  ;
 movb $1,(t+63)  |                  ;
locations [1:rax;]
exists true
`
	tornHint = `X86_64 torn-hint
{ int t[17]; }
 P0                   | P1               ;
 movq $4294967297,%r8 | movl (t+64),%ebx ;
 movntiq %r8,(t+60)   | movl (t+60),%eax ;
locations [1:rax; 1:rbx;]
exists true
`
	increments = `X86_64 two-increments
{ x=0; }
 P0       | P1       ;
 incl (x) | incl (x) ;
locations [x;]
exists true
`
	adds = `X86_64 crossing-adds
{ char t[65]; t[63]=255; }
 P0             | P1             ;
 addw $1,(t+63) | addw $1,(t+63) ;
locations [t[63]; t[64];]
exists true
`
	lockedAdds = `X86_64 locked-crossing-adds
{ char t[65]; t[63]=255; }
 P0                  | P1                  ;
 lock addw $1,(t+63) | lock addw $1,(t+63) ;
locations [t[63]; t[64];]
exists true
`
)

// outcomes are those of a test as numbers, the observed places in their order.
func outcomes(o *litmus.Outcomes) []string {
	var all []string
	for _, s := range o.Sorted() {
		all = append(all, fmt.Sprint([]int64(s.State)))
	}
	slices.Sort(all)
	return all
}

// TestInstructionsInPieces counts outcomes and executions by hand.
//
// Of the torn store, P0's steps are the execution and two commits, the lower half first but
// under PSO; P1's are two loads: 5!/(3!2!) = 10 executions, twice as many where the commits
// come in either order.
//
// Of the torn load, P1 has two steps too. P0 has two stores and, under TSO, two commits in
// order, which is s1 s2 c1 c2 or s1 c1 s2 c2, and under PSO s1 s2 c2 c1 as well: 4!/(2!2!)
// executions under SC, and 6!/(4!2!) of each of these.
//
// Two increments lose one if both load before either commits. Their threads have two steps
// each, execution and commit: 6 executions.
//
// Of two adds that carry into the next line, one loads first (P) and both its loads are of
// the initial 0x00ff; it stores 00, then 01. The other (Q) loads each half before or after
// that: ff 00 makes it store 00 01, as P did; 00 01 makes it 01 01; ff 01 makes it 00 02; 00
// 00, between the two stores, makes it 01 00, whose upper half comes before or after P's.
func TestInstructionsInPieces(t *testing.T) {
	m := newMachine(t)
	all := []memmodel.Model{memmodel.SC, memmodel.TSO, memmodel.PSO}
	for _, c := range []struct {
		text       string
		models     []memmodel.Model
		executions []uint64 // by model; 0: not counted
		want       []string
	}{
		{tornStore, all, []uint64{10, 10, 20}, []string{"[0 0]", "[0 1]", "[1 0]", "[1 1]"}},
		{tornStoreReversed, all[:2], []uint64{10, 10}, []string{"[0 0]", "[1 0]", "[1 1]"}},
		{tornStoreReversed, all[2:], []uint64{20}, []string{"[0 0]", "[0 1]", "[1 0]", "[1 1]"}},
		{tornLoad, all, []uint64{6, 30, 45}, []string{"[0]", "[1]", "[256]", "[257]"}},
		{tornLoadReversed, all[:2], []uint64{6, 30}, []string{"[0]", "[256]", "[257]"}},
		{tornLoadReversed, all[2:], []uint64{45}, []string{"[0]", "[1]", "[256]", "[257]"}},
		{tornHint, all[:1], nil, []string{"[0 0]", "[1 0]", "[1 1]"}},
		{tornHint, all[1:], nil, []string{"[0 0]", "[0 1]", "[1 0]", "[1 1]"}},
		{increments, all, []uint64{6, 6, 6}, []string{"[1]", "[2]"}},
		{adds, all, nil, []string{"[0 1]", "[0 2]", "[1 0]", "[1 1]"}},
		{lockedAdds, all, []uint64{2, 2, 2}, []string{"[1 1]"}},
	} {
		test, code := load(t, c.text)
		for i, model := range c.models {
			full, err := m.Explore(test, code, Options{Model: model, Full: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := outcomes(full.Outcomes); !slices.Equal(got, c.want) {
				t.Errorf("%s under %v ends in %v, want %v", test.Name, model, got, c.want)
			}
			if c.executions != nil && full.Stats.Executions != c.executions[i] {
				t.Errorf("%s under %v has %d executions, want %d", test.Name, model, full.Stats.Executions, c.executions[i])
			}
			reduced, err := m.Explore(test, code, Options{Model: model})
			if err != nil {
				t.Fatal(err)
			}
			if !reduced.Outcomes.Equal(full.Outcomes) {
				t.Errorf("%s under %v: the reduction loses outcomes: %v", test.Name, model, outcomes(reduced.Outcomes))
			}
		}
	}
}

// TestWitnessOfPieces: a load of half an operand is a step by itself.
func TestWitnessOfPieces(t *testing.T) {
	m := newMachine(t)
	test, code := load(t, tornLoadReversed)
	r, err := m.Explore(test, code, Options{Model: memmodel.SC})
	if err != nil {
		t.Fatal(err)
	}
	steps := r.Witness(litmus.State{256})
	at := func(text string) int {
		return slices.IndexFunc(steps, func(e Event) bool { return e.String() == text })
	}
	half, all := at("P1: movw (t+63),%ax, load of t+63 (1 bytes)"), at("P1: movw (t+63),%ax")
	upper, lower := at("P0: movb $1,(t+64)"), at("P0: movb $1,(t+63)")
	if len(steps) != 4 || half < 0 || half > lower || upper > all || half > all || upper > lower {
		t.Errorf("the execution is %q; the load of the lower half comes before its store, that of the upper one after", steps)
	}
}
