// Package casefile reads the files of cases of data-driven tests.
//
// Such a file has a head, which explains it to a reader, and cases. A case is a line "== NAME",
// lines of input, a line of four hyphens, and the lines that the code under test is to give:
//
//	== a thread that writes
//	thread 1
//	write x 1
//	----
//	x = 1
package casefile

import (
	"os"
	"strings"
	"testing"
)

// Case is a case of a file. Input ends with a newline unless it is empty; Want has no white space
// around it.
type Case struct{ Name, Input, Want string }

// Read reads a file; a case without a result fails the test.
func Read(t testing.TB, path string) (all []Case) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split("\n"+string(text), "\n== ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		input, want, found := strings.Cut("\n"+rest, "\n----\n")
		if !found {
			t.Fatalf("%s: the case %q has no line ----", path, name)
		}
		if input != "" {
			input = input[1:] + "\n"
		}
		all = append(all, Case{name, input, strings.TrimSpace(want)})
	}
	if len(all) == 0 {
		t.Fatalf("%s: there are no cases", path)
	}
	return all
}
