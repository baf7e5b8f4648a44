package tracetext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext"
	"github.com/heddle-dmt/heddle/internal/casefile"
)

// cases are traces, and how Format writes them or the errors.
func cases(t testing.TB) []casefile.Case {
	t.Helper()
	return casefile.Read(t, "testdata/texts.txt")
}

func sameThread(a, b model.Thread) bool { return a.Name == b.Name && slices.Equal(a.Events, b.Events) }

// Traces are read and written as testdata/texts.txt says, and read again as they were.
func TestTexts(t *testing.T) {
	for _, c := range cases(t) {
		trace, err := tracetext.Parse(c.Input)
		if err == nil {
			err = trace.Check()
		}
		if err != nil {
			if err.Error() != c.Want {
				t.Errorf("%s: %v, want %s", c.Name, err, c.Want)
			}
			continue
		}
		once := tracetext.Format(trace, nil)
		if strings.TrimSpace(once) != c.Want {
			t.Errorf("%s is written as\n%swant\n%s", c.Name, once, c.Want)
		}
		if strings.Contains(once, `"`) {
			continue
		}
		again, err := tracetext.Parse(once)
		if err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, once)
			continue
		}
		if twice := tracetext.Format(again, nil); twice != once || !slices.EqualFunc(trace.Threads, again.Threads, sameThread) {
			t.Errorf("%s is written as\n%sand then as\n%s", c.Name, once, twice)
		}
	}
}

// FuzzParse: any text is read or refused with a line, and a trace that is read is written and read
// again as it is.
func FuzzParse(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c.Input)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := tracetext.Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Error(err)
			}
			return
		}
		_ = trace.Check()
		once := tracetext.Format(trace, nil)
		if strings.Contains(once, `"`) {
			return
		}
		again, err := tracetext.Parse(once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if twice := tracetext.Format(again, nil); twice != once {
			t.Errorf("%s\nand again\n%s", once, twice)
		}
	})
}
