package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A tellTale is a word or phrase that vague comments use more often than plain ones, with the
// largest number of times in 10,000 words of comment that the repository may have it.
type tellTale struct {
	name    string
	pattern *regexp.Regexp
	limit   float64
}

// tellTales are the words, with the largest frequencies in wazero, gVisor, pebble, delve and x/tools.
var tellTales = []tellTale{
	{"tells", regexp.MustCompile(`(?i)\btells?\b|\btold\b`), 5},
	{"what", regexp.MustCompile(`(?i)\bwhat\b`), 20},
	{"behind", regexp.MustCompile(`(?i)\bbehind\b`), 2},
	{"comes to", regexp.MustCompile(`(?i)\b(comes?|came|coming) to\b`), 1},
	{"goes on", regexp.MustCompile(`(?i)\b(goes|go|went|gone) on\b`), 1},
	{"so many", regexp.MustCompile(`(?i)\bso many\b`), 1},
	{"nobody", regexp.MustCompile(`(?i)\bnobody\b`), 1},
	{"is none", regexp.MustCompile(`(?i)\b(is|are|was) none\b`), 1},
	{"those that", regexp.MustCompile(`(?i)\bthose (that|who|which)\b`), 5},
}

var (
	comment = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`)
	word    = regexp.MustCompile(`[A-Za-z']+`)
)

// TestPlainWords counts the tell-tale words in the comments of all Go and C files.
func TestPlainWords(t *testing.T) {
	words, places := 0, make([][]string, len(tellTales))
	for _, name := range repositoryFiles(t) {
		switch path.Ext(name) {
		case ".go", ".c", ".h":
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join(moduleRoot, name))
		if err != nil {
			continue // removed, and still in git's list
		}
		for _, at := range comment.FindAllIndex(text, -1) {
			line := 1 + strings.Count(string(text[:at[0]]), "\n")
			for i, s := range strings.Split(string(text[at[0]:at[1]]), "\n") {
				words += len(word.FindAllString(s, -1))
				for k, w := range tellTales {
					for range w.pattern.FindAllString(s, -1) {
						places[k] = append(places[k], fmt.Sprintf("%s:%d: %s", name, line+i, strings.TrimSpace(s)))
					}
				}
			}
		}
	}
	if words == 0 {
		t.Fatal("no file has a comment")
	}
	for k, w := range tellTales {
		if rate := 10_000 * float64(len(places[k])) / float64(words); rate > w.limit {
			t.Errorf("%q occurs %.1f times in 10,000 words of comment, more than %g:\n%s", w.name, rate, w.limit, strings.Join(places[k], "\n"))
		}
	}
}
