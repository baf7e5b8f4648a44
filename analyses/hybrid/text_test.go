package hybrid_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
)

// testdata/files.txt has schedule files without their last lines, separated by blank lines.
// After ---- comes "ok", or the error. A file that is read is written as it was.
func TestFilesOfText(t *testing.T) {
	text, err := os.ReadFile("testdata/files.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n\n") {
		name, rest, _ := strings.Cut(strings.TrimSpace(block), "\n")
		body, want, _ := strings.Cut(rest, "----\n")
		source := sealed(body)
		f, err := hybrid.Parse(source)
		switch {
		case err != nil && err.Error() != strings.TrimSpace(want):
			t.Errorf("%s: %v, want %s", name, err, want)
		case err == nil && strings.TrimSpace(want) != "ok":
			t.Errorf("%s: it is read, want %s", name, want)
		case err == nil:
			var again strings.Builder
			if err := f.Write(&again); err != nil || again.String() != source {
				t.Errorf("%s is written as\n%s%v", name, again.String(), err)
			}
		}
	}
}

// FuzzParse: any text is read or refused with a line, and a file that is read is read again
// as it is written.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/files.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n\n") {
		_, rest, _ := strings.Cut(strings.TrimSpace(block), "\n")
		body, _, _ := strings.Cut(rest, "----\n")
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		file, err := hybrid.Parse(sealed(body))
		if err != nil {
			var syntax *hybrid.SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 {
				t.Errorf("%v", err)
			}
			return
		}
		var once, twice strings.Builder
		if err := file.Write(&once); err != nil {
			t.Fatal(err)
		}
		again, err := hybrid.Parse(once.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, once.String())
		}
		if err := again.Write(&twice); err != nil || twice.String() != once.String() {
			t.Errorf("%v\n%s\nand again\n%s", err, once.String(), twice.String())
		}
	})
}
