package archtest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A tellTale is a word or phrase that vague comments use more often than plain ones, with the
// largest number of times in 10,000 words of comment that an area may have it.
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

// A commentCount is the number of words of comment in an area of the repository, with the places of
// each tell-tale word.
type commentCount struct {
	words  int
	places [][]string
}

// smallestArea is the number of words of comment from which an area is judged alone: in a smaller
// one a single word exceeds a limit.
const smallestArea = 10_000

// areasOf returns the areas that a file belongs to: the repository, its top folder, and the programs
// apart from the kernel.
func areasOf(name string) []string {
	areas := []string{"the repository"}
	if top, _, ok := strings.Cut(name, "/"); ok {
		areas = append(areas, top)
	}
	if strings.HasPrefix(name, "guest/programs/") {
		areas = append(areas, "guest/programs")
	}
	return areas
}

// countComments counts the words of the comments in a file's text.
func (c *commentCount) countComments(name, text string) {
	if c.places == nil {
		c.places = make([][]string, len(tellTales))
	}
	for _, at := range comment.FindAllStringIndex(text, -1) {
		line := 1 + strings.Count(text[:at[0]], "\n")
		for i, s := range strings.Split(text[at[0]:at[1]], "\n") {
			c.words += len(word.FindAllString(s, -1))
			for k, w := range tellTales {
				for range w.pattern.FindAllString(s, -1) {
					c.places[k] = append(c.places[k], fmt.Sprintf("%s:%d: %s", name, line+i, strings.TrimSpace(s)))
				}
			}
		}
	}
}

// TestPlainWords counts the tell-tale words in the comments of all Go and C files, in the whole
// repository and in each large area of it.
func TestPlainWords(t *testing.T) {
	counts := map[string]*commentCount{}
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
		for _, area := range areasOf(name) {
			if counts[area] == nil {
				counts[area] = &commentCount{}
			}
			counts[area].countComments(name, string(text))
		}
	}
	if counts["guest/programs"] == nil || counts["guest/programs"].words < smallestArea {
		t.Error("guest/programs is not judged: it has too few words of comment")
	}
	for _, area := range slices.Sorted(maps.Keys(counts)) {
		c := counts[area]
		if c.words < smallestArea {
			continue
		}
		for k, w := range tellTales {
			if rate := 10_000 * float64(len(c.places[k])) / float64(c.words); rate > w.limit {
				t.Errorf("%s: %q occurs %.1f times in 10,000 words of comment, more than %g:\n%s", area, w.name, rate, w.limit,
					strings.Join(c.places[k], "\n"))
			}
		}
	}
}
