package preconditions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/internal/casefile"
)

// cases are lines of preconditions, and the conjunctions in readable form or the errors.
func cases(t testing.TB) []casefile.Case {
	t.Helper()
	return casefile.Read(t, "testdata/sets.txt")
}

func linesOf(body string) []string {
	if body = strings.TrimSuffix(body, "\n"); body == "" {
		return nil
	}
	return strings.Split(body, "\n")
}

// TestText: sets are read as testdata/sets.txt says, and written as they were.
func TestText(t *testing.T) {
	for _, c := range cases(t) {
		lines := linesOf(c.Input)
		s, err := preconditions.Parse(lines, symbolic.NewPool())
		switch {
		case err != nil && err.Error() != c.Want:
			t.Errorf("%s: %v, want %s", c.Name, err, c.Want)
		case err == nil && s.String() != c.Want:
			t.Errorf("%s: read as %s, want %s", c.Name, s, c.Want)
		case err == nil && !slices.Equal(s.Lines(), lines):
			t.Errorf("%s is written as\n%s", c.Name, strings.Join(s.Lines(), "\n"))
		}
	}
}

// FuzzParse: any text is read or refused, and a set that is read is read again as it is written.
func FuzzParse(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(strings.TrimSuffix(c.Input, "\n"))
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
