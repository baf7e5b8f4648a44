package archtest

import (
	"strings"
	"testing"
)

// maxImportDepth bounds the number of packages of the module in the longest chain of imports that
// begins at cmd/heddle.
const maxImportDepth = 12

func TestImportDepth(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, path := range imported(f) {
			if to, inModule := strings.CutPrefix(path, modulePath+"/"); inModule {
				imports[f.dir] = append(imports[f.dir], to)
			}
		}
	}
	chain := longestChain(imports, "cmd/heddle", map[string][]string{})
	if len(chain) > maxImportDepth {
		t.Errorf("a chain of imports has %d packages, at most %d are allowed: %s", len(chain), maxImportDepth, strings.Join(chain, " "))
	}
}

// longestChain returns the longest chain of imports that begins at a package. Known has the chains
// of packages that were searched.
func longestChain(imports map[string][]string, from string, known map[string][]string) []string {
	if chain, ok := known[from]; ok {
		return chain
	}
	var longest []string
	for _, to := range imports[from] {
		if chain := longestChain(imports, to, known); len(chain) > len(longest) {
			longest = chain
		}
	}
	known[from] = append([]string{from}, longest...)
	return known[from]
}
