package memmodel_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/axiomatic"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/generate"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// generated is the texts of the generated tests.
func generated() []string {
	var texts []string
	add := func(cycles []generate.Cycle, v generate.Variant) {
		for _, c := range cycles {
			texts = append(texts, c.Test(v))
		}
	}
	com := generate.Communication()
	pod := generate.Named("PodRR", "PodRW", "PodWR", "PodWW")
	short := generate.Cycles(slices.Concat(com, pod), 5, 4)
	add(generate.Cycles(slices.Concat(com, generate.Program()), 5, 4), generate.Plain)
	add(generate.Cycles(slices.Concat(com, pod), 6, 4)[:100], generate.Plain)
	add(generate.Cycles(slices.Concat(com, generate.Fenced()), 4, 4), generate.Plain)
	for _, v := range variants {
		add(short, v)
	}
	for _, v := range acrossVariants {
		for _, c := range short {
			texts = append(texts, acrossLines(c.Test(v)))
		}
	}
	return texts
}

// acrossVariants are for acrossLines.
var acrossVariants = []generate.Variant{
	{Name: "+line", Write: "mov", Read: "mov", Sizes: []int{8}, Offsets: []int{0}},
	{Name: "+line-cut", Write: "mov", Read: "mov", Sizes: []int{8, 4, 2}, Offsets: []int{0, 2, 3}},
	{Name: "+line-nt", Write: "movnti", Read: "mov", Sizes: []int{8, 4}, Offsets: []int{0, 4}},
	{Name: "+line-xchg1", Write: "xchg", Read: "xadd", Only: 1, Sizes: []int{8}, Offsets: []int{0}},
}

var (
	location  = regexp.MustCompile(`int64_t ([a-ex-z])=0;`)
	operand   = regexp.MustCompile(`\(([a-ex-z])(\+[0-9])?\)`)
	observed  = regexp.MustCompile(`([\[;]) ?([a-ex-z])\b`)
	condition = regexp.MustCompile(`exists .*`)
)

// acrossLines moves the eight bytes of each location of a test to the end of a cache line
// and the beginning of the next.
func acrossLines(text string) string {
	text = condition.ReplaceAllString(text, "exists (true)")
	text = location.ReplaceAllString(text, "int $1[17];")
	text = operand.ReplaceAllString(text, "($1+60$2)")
	return observed.ReplaceAllString(text, "$1 $2[15]; $2[16]")
}

var variants = []generate.Variant{
	{Name: "+xchg", Write: "xchg", Read: "mov"},
	{Name: "+xadd", Write: "mov", Read: "xadd"},
	{Name: "+xchg1", Write: "xchg", Read: "mov", Only: 1},
	{Name: "+xchg2", Write: "xchg", Read: "xadd", Only: 2},
	{Name: "+nt", Write: "movnti", Read: "mov"},
	{Name: "+nt1", Write: "movnti", Read: "mov", Only: 1},
	{Name: "+wide", Write: "mov", Read: "mov", Sizes: []int{8, 4}, Offsets: []int{0, 4}},
	{Name: "+low", Write: "mov", Read: "mov", Sizes: []int{1, 8, 2}, Offsets: []int{0}},
	{Name: "+cut", Write: "mov", Read: "mov", Sizes: []int{4, 2, 4}, Offsets: []int{0, 3, 2}},
}

func parse(t testing.TB, name, text string) *litmus.Test {
	t.Helper()
	test, err := litmus.Parse(name, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return test
}

// parseAll parses and assembles tests.
func parseAll(t testing.TB, texts []string) ([]*litmus.Test, [][]litmus.Code) {
	t.Helper()
	var tests []*litmus.Test
	for _, text := range texts {
		tests = append(tests, parse(t, "test.litmus", text))
	}
	codes, err := litmus.Assemble(tests)
	if err != nil {
		t.Fatal(err)
	}
	return tests, codes
}

// newMachine starts a machine on the engine direct, or on Unicorn if the host has no other.
func newMachine(t testing.TB) *explore.Machine {
	t.Helper()
	engine := engines.Direct
	if engines.Check(engine, arch.V2) != nil {
		engine = engines.Unicorn
	}
	return newMachineOn(t, engine)
}

func newMachineOn(t testing.TB, engine string) *explore.Machine {
	t.Helper()
	if p := engines.Check(engine, arch.V2); p != nil {
		t.Skipf("the engine %s: %s is allowed", engine, p.Allowed)
	}
	m, err := explore.NewMachine(engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// agree compares machine and checker on a test, and the model with the
// stronger one before it.
func agree(t *testing.T, m *explore.Machine, test *litmus.Test, code []litmus.Code) {
	t.Helper()
	var stronger *litmus.Outcomes
	for _, model := range memmodel.Models() {
		run, err := m.Explore(test, code, explore.Options{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		axioms, err := axiomatic.Check(test, model)
		if err != nil {
			t.Fatal(err)
		}
		o := test.Observer()
		for _, s := range run.Outcomes.Minus(axioms.Outcomes) {
			t.Errorf("%s under %v: the machine has %s, and the axioms forbid it; its execution:\n%v", test.Name, model, o.Format(s), run.Witness(s))
		}
		for _, s := range axioms.Outcomes.Minus(run.Outcomes) {
			t.Errorf("%s under %v: the axioms allow %s, and the machine has it not; an execution:\n%s", test.Name, model, o.Format(s), strings.Join(axioms.Witness(s), "\n"))
		}
		if stronger != nil {
			for _, s := range stronger.Minus(run.Outcomes) {
				t.Errorf("%s: %s is an outcome of the stronger model and not of %v", test.Name, o.Format(s), model)
			}
		}
		stronger = run.Outcomes
		if t.Failed() {
			t.Fatalf("%s", test)
		}
	}
}

func TestMachineAgreesWithAxioms(t *testing.T) {
	tests, codes := parseAll(t, generated())
	if len(tests) < 400 {
		t.Errorf("%d generated tests; want 400", len(tests))
	}
	m := newMachine(t)
	for i := 0; i < len(tests); i += testsize.Pick(4, 1, 1) {
		agree(t, m, tests[i], codes[i])
	}
}

// BenchmarkGenerated explores and checks all generated tests under all models.
func BenchmarkGenerated(b *testing.B) {
	texts := generated()
	m := newMachine(b)
	for b.Loop() {
		tests, codes := parseAll(b, texts)
		for i, test := range tests {
			for _, model := range memmodel.Models() {
				if _, err := m.Explore(test, codes[i], explore.Options{Model: model}); err != nil {
					b.Fatal(err)
				}
				if _, err := axiomatic.Check(test, model); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.ReportMetric(float64(len(texts)), "tests")
}
