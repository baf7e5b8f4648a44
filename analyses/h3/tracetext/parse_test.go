package tracetext_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext"
)

// cases are the parts of testdata/texts.txt: a name, a trace, and after ---- how Format writes it,
// or the error.
func cases(t testing.TB) (names, texts, results []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/texts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		name, rest, _ := strings.Cut(block, "\n")
		body, result, _ := strings.Cut(rest, "----\n")
		names, texts, results = append(names, name), append(texts, body), append(results, strings.TrimSpace(result))
	}
	return names, texts, results
}

func sameThread(a, b model.Thread) bool { return a.Name == b.Name && slices.Equal(a.Events, b.Events) }

// Traces are read and written as testdata/texts.txt says, and read again as they were.
func TestTexts(t *testing.T) {
	names, texts, results := cases(t)
	for i, name := range names {
		trace, err := tracetext.Parse(texts[i])
		if err == nil {
			err = trace.Check()
		}
		if err != nil {
			if err.Error() != results[i] {
				t.Errorf("%s: %v, want %s", name, err, results[i])
			}
			continue
		}
		once := tracetext.Format(trace, nil)
		if strings.TrimSpace(once) != results[i] {
			t.Errorf("%s is written as\n%swant\n%s", name, once, results[i])
		}
		if strings.Contains(once, `"`) {
			continue
		}
		again, err := tracetext.Parse(once)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, once)
			continue
		}
		if twice := tracetext.Format(again, nil); twice != once || !slices.EqualFunc(trace.Threads, again.Threads, sameThread) {
			t.Errorf("%s is written as\n%sand then as\n%s", name, once, twice)
		}
	}
}

// FuzzParse: any text is read or refused with a line, and a trace that is read is written and read
// again as it is.
func FuzzParse(f *testing.F) {
	_, texts, _ := cases(f)
	for _, text := range texts {
		f.Add(text)
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
