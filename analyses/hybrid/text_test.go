package hybrid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/internal/casefile"
)

// files are schedule files without their last lines, and "ok" or the errors.
func files(t testing.TB) []casefile.Case {
	t.Helper()
	return casefile.Read(t, "testdata/files.txt")
}

// TestFilesOfText: the files are read or refused as testdata/files.txt says, and written as they
// were.
func TestFilesOfText(t *testing.T) {
	for _, c := range files(t) {
		source := sealed(c.Input)
		f, err := hybrid.Parse(source)
		switch {
		case err != nil && err.Error() != c.Want:
			t.Errorf("%s: %v, want %s", c.Name, err, c.Want)
		case err == nil && c.Want != "ok":
			t.Errorf("%s: it is read, want %s", c.Name, c.Want)
		case err == nil:
			var again strings.Builder
			if err := f.Write(&again); err != nil || again.String() != source {
				t.Errorf("%s is written as\n%s%v", c.Name, again.String(), err)
			}
		}
	}
}

// FuzzParse: any text is read or refused with a line, and a file that is read is read again
// as it is written.
func FuzzParse(f *testing.F) {
	for _, c := range files(f) {
		f.Add(c.Input)
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
