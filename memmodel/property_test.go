package memmodel_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/generate"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// sample is the texts that properties are tested on.
func sample(t testing.TB) []string {
	texts := classicTexts(t)
	edges := slices.Concat(generate.Communication(), generate.Named("PodRR", "PodRW", "PodWR", "PodWW", "PosWR", "PosRR"))
	for _, c := range generate.Cycles(edges, 4, 4) {
		texts = append(texts, c.Test(generate.Plain))
	}
	return texts
}

// lines is the outcomes as text, each passed through change.
func lines(o *litmus.Outcomes, change func(string) string) []string {
	var all []string
	for _, out := range o.Sorted() {
		parts := strings.Split(strings.TrimSuffix(change(o.Observer().Format(out.State)), ";"), "; ")
		slices.Sort(parts)
		all = append(all, strings.Join(parts, " "))
	}
	slices.Sort(all)
	return all
}

func same(s string) string { return s }

func TestFencesOnlyRemoveOutcomes(t *testing.T) {
	var plain []*litmus.Test
	var fenced []*litmus.Test
	for _, text := range sample(t) {
		test := parse(t, "a", text)
		for i, th := range test.Threads {
			for at := 1; at < len(th.Code); at++ {
				for _, fence := range []string{"mfence", "sfence", "lfence"} {
					if with := withFence(t, text, i, at, fence); with != nil {
						plain, fenced = append(plain, test), append(fenced, with)
					}
				}
			}
		}
	}
	m := newMachine(t)
	codes, err := litmus.Assemble(slices.Concat(plain, fenced))
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range plain {
		for _, model := range memmodel.Models() {
			o := explore.Options{Model: model}
			without := explored(t, m, test, codes[i], o).Outcomes
			with := explored(t, m, fenced[i], codes[len(plain)+i], o).Outcomes
			if extra := with.Minus(without); len(extra) > 0 {
				t.Errorf("under %v a fence adds %s to\n%s", model, with.Observer().Format(extra[0]), fenced[i])
			}
			if model == memmodel.SC && !with.Equal(without) {
				t.Errorf("under SC a fence changes\n%s", fenced[i])
			}
		}
	}
	t.Logf("%d fences", len(plain))
}

// withFence puts a fence into a test without jumps.
func withFence(t *testing.T, text string, thread, at int, fence string) *litmus.Test {
	test := parse(t, "a", text)
	code := test.Threads[thread].Code
	for _, in := range code {
		if strings.HasPrefix(in.Op, "j") || in.Op == "ret" {
			return nil
		}
	}
	test.Threads[thread].Code = slices.Insert(code, at, litmus.Instr{Op: fence})
	return parse(t, "a", test.String())
}

var (
	rotated  = map[byte]byte{'a': 'b', 'b': 'c', 'c': 'd', 'd': 'a'}
	fullReg  = regexp.MustCompile(`([%:][re])([abcd])x`)
	byteReg  = regexp.MustCompile(`(%)([abcd])(l)`)
	threadOf = regexp.MustCompile(`\b([0-9]):([re])`)
)

// otherRegisters renames registers.
func otherRegisters(text string) string {
	text = fullReg.ReplaceAllStringFunc(text, func(s string) string { return s[:2] + string(rotated[s[2]]) + s[3:] })
	return byteReg.ReplaceAllStringFunc(text, func(s string) string { return s[:1] + string(rotated[s[1]]) + s[2:] })
}

// TestNamesDoNotMatter reverses threads and locations and renames registers.
func TestNamesDoNotMatter(t *testing.T) {
	type pair struct {
		test, renamed *litmus.Test
		change        func(string) string
	}
	var pairs []pair
	var all []*litmus.Test
	for _, text := range sample(t) {
		test := parse(t, "a", text)
		if strings.Contains(text, "cmpxchg") || test.Arch == "X86" {
			continue // uses rax by itself; names registers otherwise
		}
		reversed := func(s string) string {
			return threadOf.ReplaceAllStringFunc(s, func(s string) string {
				n, _ := strconv.Atoi(s[:1])
				return fmt.Sprintf("%d%s", len(test.Threads)-1-n, s[1:])
			})
		}
		change := func(s string) string { return otherRegisters(reversed(s)) }
		other := parse(t, "a", text)
		slices.Reverse(other.Vars)
		slices.Reverse(other.Threads)
		renamed := parse(t, "a", change(other.String()))
		pairs = append(pairs, pair{test, renamed, change})
		all = append(all, test, renamed)
	}
	codes, err := litmus.Assemble(all)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	for i, p := range pairs {
		for _, model := range memmodel.Models() {
			a := explored(t, m, p.test, codes[2*i], explore.Options{Model: model})
			b := explored(t, m, p.renamed, codes[2*i+1], explore.Options{Model: model})
			if x, y := lines(a.Outcomes, p.change), lines(b.Outcomes, same); !slices.Equal(x, y) {
				t.Errorf("under %v:\n%v\n%s\nafter renaming:\n%v\n%s", model, x, p.test, y, p.renamed)
			}
		}
	}
}

// TestOneThreadHasOneOutcome runs all the code of a test in one thread.
func TestOneThreadHasOneOutcome(t *testing.T) {
	var texts []string
	for _, c := range generate.Cycles(slices.Concat(generate.Communication(), generate.Program()), 5, 4) {
		test := parse(t, "a", c.Test(generate.Variant{Write: "movnti", Read: "mov", Sizes: []int{8, 4, 2}, Offsets: []int{0, 4, 3}}))
		for _, th := range test.Threads[1:] {
			test.Threads[0].Code = append(test.Threads[0].Code, th.Code...)
		}
		test.Threads = test.Threads[:1]
		test.Regs = slices.DeleteFunc(test.Regs, func(r litmus.RegInit) bool { return r.Thread > 0 })
		test.Cond, test.Locations = litmus.True{}, []litmus.Loc{{Thread: 0, Reg: 0, Name: "rax"}, {Thread: 0, Reg: 3, Name: "rbx"}, {Thread: -1, Name: "x"}}
		texts = append(texts, test.String())
	}
	tests, codes := parseAll(t, texts)
	m := newMachine(t)
	for i, test := range tests {
		var first []string
		for _, model := range memmodel.Models() {
			got := lines(explored(t, m, test, codes[i], explore.Options{Model: model}).Outcomes, same)
			if first == nil {
				first = got
			}
			if len(got) != 1 || !slices.Equal(got, first) {
				t.Fatalf("under %v one thread has the outcomes %v, under SC %v\n%s", model, got, first, test)
			}
		}
	}
}

// TestWalksStayInside compares random executions with the exploration.
func TestWalksStayInside(t *testing.T) {
	tests, codes := parseAll(t, textsOf(classicsAndSplit(t)))
	m := newMachine(t)
	for i, test := range tests {
		for _, model := range memmodel.Models() {
			all := explored(t, m, test, codes[i], explore.Options{Model: model})
			some, stats, err := m.Walk(test, codes[i], model, 500, 7)
			if err != nil {
				t.Fatal(err)
			}
			if extra := some.Minus(all.Outcomes); len(extra) > 0 || stats.Executions != 500 {
				t.Errorf("%s under %v: of 500 random executions %d ended, with %d outcomes that the exploration has not", test.Name, model, stats.Executions, len(extra))
			}
			again, _, _ := m.Walk(test, codes[i], model, 500, 7)
			if !slices.Equal(lines(some, same), lines(again, same)) {
				t.Errorf("%s: the same seed gives other outcomes", test.Name)
			}
		}
	}
}

// TestCyclesAreForbiddenUnderSC: no execution whose relations form a cycle is
// sequentially consistent (Shasha and Snir, TOPLAS 10(2), 1988).
func TestCyclesAreForbiddenUnderSC(t *testing.T) {
	var texts []string
	edges := slices.Concat(generate.Communication(), generate.Named("PodRR", "PodRW", "PodWR", "PodWW"))
	for _, c := range generate.Cycles(edges, 6, 4) {
		texts = append(texts, c.Test(generate.Plain))
	}
	tests, codes := parseAll(t, texts)
	m := newMachine(t)
	weaker := 0
	for i, test := range tests {
		sc := explored(t, m, test, codes[i], explore.Options{Model: memmodel.SC})
		if sc.Outcomes.Verdict().Satisfied > 0 {
			t.Errorf("SC reaches the condition of\n%s", test)
		}
		pso := explored(t, m, test, codes[i], explore.Options{Model: memmodel.PSO})
		if pso.Outcomes.Verdict().Satisfied > 0 {
			weaker++
		}
	}
	if weaker < len(tests)/4 {
		t.Errorf("PSO reaches the conditions of %d of %d tests only", weaker, len(tests))
	}
}
