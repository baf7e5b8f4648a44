package memmodel_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// classic is a test with its published verdicts.
type classic struct {
	source, text string
	reached      map[string]string // by model: never or sometimes
}

var verdicts = regexp.MustCompile(`^(.*): sc=(\w+) tso=(\w+) pso=(\w+)$`)

func classics(t testing.TB) []classic { return readTests(t, "testdata/classic.txt") }

// classicsAndSplit are the classic tests and those with instructions in several accesses.
func classicsAndSplit(t testing.TB) []classic {
	return append(classics(t), readTests(t, "testdata/split.txt")...)
}

func readTests(t testing.TB, file string) []classic {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []classic
	for _, block := range strings.Split(string(text), "\n== ")[1:] {
		first, rest, _ := strings.Cut(block, "\n")
		m := verdicts.FindStringSubmatch(first)
		if m == nil {
			t.Fatalf("%s: no verdicts in %q", file, first)
		}
		all = append(all, classic{m[1], rest, map[string]string{"sc": m[2], "tso": m[3], "pso": m[4]}})
	}
	return all
}

func textsOf(all []classic) []string {
	var texts []string
	for _, c := range all {
		texts = append(texts, c.text)
	}
	return texts
}

func classicTexts(t testing.TB) []string { return textsOf(classics(t)) }

// TestClassics runs on every engine.
func TestClassics(t *testing.T) {
	for _, engine := range []string{engines.Direct, engines.Unicorn} {
		t.Run(engine, func(t *testing.T) { testClassics(t, newMachineOn(t, engine)) })
	}
}

func testClassics(t *testing.T, m *explore.Machine) {
	all := classicsAndSplit(t)
	tests, codes := parseAll(t, textsOf(all))
	for i, test := range tests {
		for _, model := range memmodel.Models() {
			r, err := m.Explore(test, codes[i], explore.Options{Model: model})
			if err != nil {
				t.Fatal(err)
			}
			got := "never"
			if r.Outcomes.Verdict().Satisfied > 0 {
				got = "sometimes"
			}
			if want := all[i].reached[model.String()]; got != want {
				var b strings.Builder
				_ = r.Outcomes.Write(&b)
				t.Errorf("%s under %v: %s; %s says %s\n%s", test.Name, model, got, all[i].source, want, b.String())
			}
		}
		agree(t, m, test, codes[i])
	}
}

// TestReductionLosesNothing compares with explorations that take every step.
func TestReductionLosesNothing(t *testing.T) {
	tests, codes := parseAll(t, textsOf(classicsAndSplit(t)))
	m := newMachine(t)
	for i, test := range tests {
		for _, model := range memmodel.Models() {
			full := explored(t, m, test, codes[i], explore.Options{Model: model, Full: true})
			reduced := explored(t, m, test, codes[i], explore.Options{Model: model})
			if !full.Outcomes.Equal(reduced.Outcomes) {
				t.Errorf("%s under %v: %d outcomes with all steps, %d with the needed ones", test.Name, model, full.Outcomes.Len(), reduced.Outcomes.Len())
			}
			if full.Stats.States < reduced.Stats.States {
				t.Errorf("%s under %v: the reduction adds states", test.Name, model)
			}
		}
	}
}

func explored(t testing.TB, m *explore.Machine, test *litmus.Test, code []litmus.Code, o explore.Options) *explore.Result {
	t.Helper()
	r, err := m.Explore(test, code, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
