package generate

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// TestClassicCycles: the cycles that diy7 gives the well-known tests by.
func TestClassicCycles(t *testing.T) {
	have := map[string]bool{}
	for _, c := range Cycles(slices.Concat(Communication(), Named("PodRR", "PodRW", "PodWR", "PodWW")), 6, 4) {
		have[c.canonical()] = true
	}
	for name, edges := range map[string][]string{
		"SB": {"PodWR", "Fre", "PodWR", "Fre"}, "MP": {"PodWW", "Rfe", "PodRR", "Fre"}, "LB": {"PodRW", "Rfe", "PodRW", "Rfe"},
		"S": {"PodWW", "Rfe", "PodRW", "Wse"}, "R": {"PodWW", "Wse", "PodWR", "Fre"}, "2+2W": {"PodWW", "Wse", "PodWW", "Wse"},
		"WRC": {"Rfe", "PodRW", "Rfe", "PodRR", "Fre"}, "RWC": {"Rfe", "PodRR", "Fre", "PodWR", "Fre"},
		"IRIW": {"Rfe", "PodRR", "Fre", "Rfe", "PodRR", "Fre"},
	} {
		if !have[Cycle(Named(edges...)).canonical()] {
			t.Errorf("%s is not among the cycles", name)
		}
	}
}

func TestCyclesAreDifferent(t *testing.T) {
	edges := slices.Concat(Communication(), Program())
	var names []string
	for _, c := range Cycles(edges, 5, 3) {
		names = append(names, c.canonical())
		if c.Threads() < 2 || c.Threads() > 3 {
			t.Errorf("%s has %d threads", c.Name(), c.Threads())
		}
	}
	again := Cycles(edges, 5, 3)
	for i := range again {
		if again[i].canonical() != names[i] {
			t.Fatal("the second enumeration is another one")
		}
	}
	slices.Sort(names)
	if n := len(slices.Compact(slices.Clone(names))); n != len(names) {
		t.Errorf("%d of %d cycles are different", n, len(names))
	}
}

// TestMessagePassing compares with diy7's MP but for the layout.
func TestMessagePassing(t *testing.T) {
	text := Cycle(Named("PodWW", "Rfe", "PodRR", "Fre")).Test(Plain)
	want := `X86_64 PodWW+Rfe+PodRR+Fre
{
 int64_t x=0;
 int64_t y=0;
}
 P0          | P1            ;
 movl $1,(x) | movl (y),%eax ;
 movl $1,(y) | movl (x),%ebx ;
locations [1:rax;1:rbx;[x];[y];]
exists (1:rax=1 /\ 1:rbx=0)
`
	test, err := litmus.Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	got := test.String()
	if i := strings.Index(got, "}\n"); !strings.HasSuffix(got, want[strings.Index(want, "}\n"):]) || i < 0 {
		t.Errorf("generated\n%s\nwant\n%s", got, want)
	}
}
