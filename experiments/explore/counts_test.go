package explore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/memmodel"
)

// TestKnownCounts: small programs have the numbers of executions that the tests of Nidhugg, the tool of Abdulla, Atig,
// Jonsson and Leonardsson (TACAS 2015), list for the same program, or else the numbers that the enumeration of all
// interleavings in the tests of sched/dpor has (TestKnownPrograms there). SB and IRIW, in which each execution is an
// outcome, have as many as these have outcomes: 3 and 15 under SC, 4 and 15 under TSO.
func TestKnownCounts(t *testing.T) {
	for _, x := range []struct {
		name, text string
		want       [3]int // under sc, tso and pso; 0: it is not known
	}{
		{"SB; Small_dekker of TSO_test.cpp", "Wx1 Ry | Wy1 Rx", [3]int{3, 4, 4}},
		{"read_read_write_1 of TSO_test.cpp", "Wx1 | Rx | Rx", [3]int{4, 4, 4}},
		{"before_update of TSO_test.cpp", "Rx Wy1 | Ry Wx1", [3]int{3, 3, 3}},
		{"fib_simple of TSO_test.cpp and PSO_test.cpp", "Rx Ry Wx1 | Rx Ry Wy1 | Rx Ry", [3]int{11, 11, 11}},
		{"Atomic_4 of PSO_test.cpp", "Wx1 F Ry | Wy1 F Rx", [3]int{3, 3, 3}},
		{"Atomic_9 of PSO_test.cpp", "Wx1 Wx2 | Wx1 Wx2 | Wx1 Wx2", [3]int{90, 90, 90}},
		{"IRIW", "Wx1 | Wy1 | Rx Ry | Ry Rx", [3]int{15, 15, 15}},
		{"Peterson; Small_peterson of TSO_test.cpp has 12 under tso", "Wx1 Wz1 Rz Ry | Wy1 Wz2 Rz Rx", [3]int{6, 18, 32}},
	} {
		program := freestanding(t, threadsText(x.text))
		for i, model := range memmodel.Models() {
			r := exploreProgram(t, program, explore.Options{Model: model})
			if !r.Complete || r.Executions != x.want[i] || r.Redundant+r.Outlasted > 0 {
				t.Errorf("%s under %v: %d executions, want %d: %+v", x.name, model, r.Executions, x.want[i], *r)
			}
		}
	}
}

// threadsText is the program of a text, as of classics, that prints nothing.
func threadsText(text string) string {
	var b strings.Builder
	threads := strings.Split(text, "|")
	b.WriteString("#include \"threads.h\"\nstatic int x, y, z;\nstatic void thread(long number) {\n switch (number) {\n")
	for n, thread := range threads {
		fmt.Fprintf(&b, " case %d:\n", n)
		operations(thread, func(op byte, at, value string, _ int) {
			switch op {
			case 'W':
				fmt.Fprintf(&b, "  STORE(%s, %s);\n", at, value)
			case 'R':
				fmt.Fprintf(&b, "  (void)LOAD(%s);\n", at)
			case 'F':
				b.WriteString("  __asm__ volatile(\"mfence\" ::: \"memory\");\n")
			}
		})
		b.WriteString("  break;\n")
	}
	fmt.Fprintf(&b, " }\n}\nstatic void run(void) { for (long i = 0; i < %d; i++) create(i); }\n", len(threads))
	return b.String()
}
