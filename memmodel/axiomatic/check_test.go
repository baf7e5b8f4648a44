package axiomatic

import (
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

const iriw = `X86_64 IRIW
{ }
 P0          | P1          | P2            | P3            ;
 movl $1,(x) | movl $1,(y) | movl (x),%eax | movl (y),%eax ;
             |             | movl (y),%ebx | movl (x),%ebx ;
exists (2:rax=1 /\ 2:rbx=0 /\ 3:rax=1 /\ 3:rbx=0)
`

func parse(t testing.TB, text string) *litmus.Test {
	t.Helper()
	test, err := litmus.Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	return test
}

func TestForbidsWhatTheModelsForbid(t *testing.T) {
	for _, m := range memmodel.Models() {
		r, err := Check(parse(t, iriw), m)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Outcomes.Verdict(); v.Satisfied != 0 || r.Outcomes.Len() != 15 {
			t.Errorf("%v: %d outcomes, of which %d disagree on the order of writes; want 15 and 0", m, r.Outcomes.Len(), v.Satisfied)
		}
	}
}

func TestWitness(t *testing.T) {
	test := parse(t, "X86_64 SB\n{}\nP0|P1;\nmovl $1,(x)|movl $1,(y);\nmovl (y),%eax|movl (x),%eax;\nexists (0:rax=0 /\\ 1:rax=0)")
	r, err := Check(test, memmodel.TSO)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(r.Witness(litmus.State{0, 1}), "\n")
	want := `e0: P0 W4[0x0]=1
e1: P0 R4[0x40]=0
e2: P1 W4[0x40]=1
e3: P1 R4[0x0]=1
bytes 0x0 to 0x3: e3 reads from e0
bytes 0x40 to 0x43: e1 reads from the initial state`
	if got != want {
		t.Errorf("witness\n%s\nwant\n%s", got, want)
	}
}

func TestRefusals(t *testing.T) {
	many := "X86_64 T\n{}\nP0;\n" + strings.Repeat("movl $1,(x);\n", 65) + "exists true"
	for _, c := range []struct{ text, want string }{
		{"X86_64 T\n{}\nP0;\nL: movl (x),%eax;\njmp L;\nexists true", "f:5: the axiomatic checker cannot follow the loop that the jump closes"},
		{"X86_64 T\n{}\nP0;\nmovl (%rax),%eax;\nexists true", "f:4: P0 accesses 0x0, where the test has no location"},
		{many, "f: the axiomatic checker takes tests with up to 64 memory accesses and fences, and this one has 65"},
	} {
		_, err := Check(parse(t, c.text), memmodel.TSO)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestChainsOfWrites: the value that a thread writes may depend on a chain of reads and
// writes of others, here one increment a thread.
func TestChainsOfWrites(t *testing.T) {
	test := parse(t, "X86_64 T\n{}\nP0|P1|P2|P3;\nlock incl (x)|lock incl (x)|lock incl (x)|lock incl (x);\nforall [x]=4")
	r, err := Check(test, memmodel.PSO)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Outcomes.Verdict().OK || r.Outcomes.Len() != 1 {
		t.Errorf("%d outcomes", r.Outcomes.Len())
	}
}

func BenchmarkIRIW(b *testing.B) {
	test := parse(b, iriw)
	for b.Loop() {
		if _, err := Check(test, memmodel.TSO); err != nil {
			b.Fatal(err)
		}
	}
}
