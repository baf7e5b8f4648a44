package preconditions_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// cases are the parts of testdata/sets.txt: a name, lines of preconditions, and after ---- the
// conjunction in readable form, or the error.
func cases(t testing.TB) (names []string, lines [][]string, results []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/sets.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		name, rest, _ := strings.Cut(block, "\n")
		body, result, _ := strings.Cut(rest, "----\n")
		names, results = append(names, name), append(results, strings.TrimSpace(result))
		lines = append(lines, linesOf(body))
	}
	return names, lines, results
}

func linesOf(body string) []string {
	if body = strings.TrimSuffix(body, "\n"); body == "" {
		return nil
	}
	return strings.Split(body, "\n")
}

// TestText: sets are read as testdata/sets.txt says, and written as they were.
func TestText(t *testing.T) {
	names, lines, results := cases(t)
	for i, name := range names {
		s, err := preconditions.Parse(lines[i], symbolic.NewPool())
		switch {
		case err != nil && err.Error() != results[i]:
			t.Errorf("%s: %v, want %s", name, err, results[i])
		case err == nil && s.String() != results[i]:
			t.Errorf("%s: read as %s, want %s", name, s, results[i])
		case err == nil && !slices.Equal(s.Lines(), lines[i]):
			t.Errorf("%s is written as\n%s", name, strings.Join(s.Lines(), "\n"))
		}
	}
}

// FuzzParse: any text is read or refused, and a set that is read is read again as it is written.
func FuzzParse(f *testing.F) {
	_, lines, _ := cases(f)
	for _, l := range lines {
		f.Add(strings.Join(l, "\n"))
	}
	f.Fuzz(func(t *testing.T, body string) {
		s, err := preconditions.Parse(linesOf(body), symbolic.NewPool())
		if err != nil {
			return
		}
		once := s.Lines()
		again, err := preconditions.Parse(once, symbolic.NewPool())
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(once, "\n"))
		}
		if twice := again.Lines(); !slices.Equal(once, twice) {
			t.Errorf("%q\nand again\n%q", once, twice)
		}
	})
}
