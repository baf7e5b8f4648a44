package casefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.txt")
	text := "Sums.\n\n== two numbers\n1\n\n2\n----\n3\n\n== nothing\n----\n0\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []Case{{"two numbers", "1\n\n2\n", "3"}, {"nothing", "", "0"}}
	if got := Read(t, path); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
