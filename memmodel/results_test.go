package memmodel_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/axiomatic"
	"github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// result is a test of testdata/results.txt with what is printed under some models.
type result struct {
	test, models, printed string
}

// results reads testdata/results.txt, whose head describes it.
func results(t testing.TB) (all []result) {
	t.Helper()
	text, err := os.ReadFile("testdata/results.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n== ")[1:] {
		_, rest, _ := strings.Cut(block, "\n")
		parts := strings.Split(rest, "\n---- ")
		for _, part := range parts[1:] {
			models, printed, _ := strings.Cut(part, "\n")
			all = append(all, result{parts[0], models, strings.TrimSpace(printed)})
		}
	}
	return all
}

// printed is what heddle litmus prints of outcomes if each has come up once.
func printed(t testing.TB, o *litmus.Outcomes) string {
	t.Helper()
	once := litmus.NewOutcomes(o.Observer())
	for _, out := range o.Sorted() {
		once.Add(out.State, 1)
	}
	var b strings.Builder
	if err := once.Write(&b); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// TestResults: the machine and the axioms have the outcomes of testdata/results.txt, and the
// results are printed as there.
func TestResults(t *testing.T) {
	all := results(t)
	var texts []string
	for _, r := range all {
		texts = append(texts, r.test)
	}
	tests, codes := parseAll(t, texts)
	m := newMachine(t)
	for i, r := range all {
		models := strings.Fields(r.models)
		for _, model := range memmodel.Models() {
			if !slices.Contains(models, model.String()) {
				continue
			}
			if got := printed(t, explored(t, m, tests[i], codes[i], explore.Options{Model: model}).Outcomes); got != r.printed {
				t.Errorf("%s on the machine under %v:\n%s\nwant\n%s", tests[i].Name, model, got, r.printed)
			}
			axioms, err := axiomatic.Check(tests[i], model)
			if err != nil {
				t.Fatal(err)
			}
			expected, err := litmus.ParseExpectations("results.txt", r.printed)
			if err != nil {
				t.Fatal(err)
			}
			if d := axioms.Outcomes.Differences(expected[0]); len(d) > 0 {
				t.Errorf("%s, read as an expectation: %v", tests[i].Name, d)
			}
			if got := printed(t, axioms.Outcomes); got != r.printed {
				t.Errorf("%s by the axioms of %v:\n%s\nwant\n%s", tests[i].Name, model, got, r.printed)
			}
		}
	}
}
