package archtest

import (
	"go/ast"
	"testing"
)

// shortestMean is the bound of TestNameLengths. Model codebases have means from 11 to 15.
const shortestMean = 10

// TestNameLengths measures the names of unexported functions and methods: a name that is a whole
// verb phrase or predicate is seldom short.
func TestNameLengths(t *testing.T) {
	letters, names := 0, 0
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, d := range f.file.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || ast.IsExported(function.Name.Name) || function.Name.Name == "main" || function.Name.Name == "init" {
				continue
			}
			letters += len(function.Name.Name)
			names++
		}
	}
	if mean := float64(letters) / float64(names); mean <= shortestMean {
		t.Errorf("names of unexported functions have %.2f letters on average, should be more than %d", mean, shortestMean)
	}
}
