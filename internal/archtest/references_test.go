package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reference is a link of a document to a declaration: [`Type.method`](../folder/file.go).
var reference = regexp.MustCompile("\\[`([A-Za-z_]\\w*)(?:\\.(\\w+))?`\\]\\(\\.\\./([^)]+\\.(?:go|c|h))\\)")

// TestReferencesOfDocuments looks for every declaration that a document links to, in the file
// that it names.
func TestReferencesOfDocuments(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(moduleRoot, "docs", "*.md"))
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	found := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
			found++
			source, err := os.ReadFile(filepath.Join(moduleRoot, m[3]))
			if err != nil {
				t.Errorf("%s: %v", document, err)
			} else if !declares(string(source), m[1], m[2]) {
				t.Errorf("%s: %s does not declare %s", document, m[3], strings.TrimSuffix(m[1]+"."+m[2], "."))
			}
		}
	}
	if found == 0 {
		t.Error("no document has a reference")
	}
}

// declares reports whether a source file declares a type or function, or a method or field of
// a type.
func declares(source, name, member string) bool {
	patterns := []string{`(?m)^type ` + name + `\b`, `(?m)^func ` + name + `\(`, `(?m)^[\w *]*\b` + name + `\(`}
	if member != "" {
		patterns = []string{
			`(?m)^func \(\w+ \*?` + name + `\) ` + member + `\(`,
			`(?ms)^type ` + name + ` (?:interface|struct) \{.*?^\t` + member + `\b.*?^\}`,
		}
	}
	for _, p := range patterns {
		if regexp.MustCompile(p).MatchString(source) {
			return true
		}
	}
	return false
}
