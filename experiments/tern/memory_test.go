package tern_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// The bytes of a file that a program maps are inputs: other data are admitted, but neither another digit that the
// number of operations depends on nor another size. If they may be written through the mapping the content is fixed.
func TestMappedFile(t *testing.T) {
	bin := gcctest.File(t, "testdata/mapped.c", "-O1")
	for _, mode := range []string{"private", "shared"} {
		dir := t.TempDir()
		m := memoize(t, config(dir, bin, writeText(t, dir, "recorded", "2abc"), mode), tern.Options{})
		if fixed := len(m.Pinned) > 0; fixed != (mode == "shared") {
			t.Errorf("%s: pinned %q", mode, m.Pinned)
		}
		for i, other := range []struct {
			text     string
			admitted bool
		}{{"2abc", true}, {"2xyz", mode == "private"}, {"3abc", false}, {"2abcd", false}} {
			c := config(dir, bin, writeText(t, dir, "recorde"+string(rune('1'+i)), other.text), mode)
			c.Seed, c.Cores = uint64(i), 1+i%3
			switch why := tern.Admits(&c, m.File); {
			case (why == "") != other.admitted:
				t.Errorf("%s %q: %q", mode, other.text, why)
			case why == "":
				follows(t, c, m)
			}
		}
	}
}

// writeText writes a file and returns its path.
func writeText(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The arguments of a program that the recorded one starts are written to that program's memory, and not to that of the
// process that called vfork(2): its own arguments remain inputs.
func TestChildrenOfVfork(t *testing.T) {
	bin := gcctest.File(t, "testdata/child.c", "-O1")
	c := config(t.TempDir(), bin, "banana")
	m := memoize(t, c, tern.Options{})
	c.Args = []string{bin, "papaya"}
	follows(t, c, m)
	for _, other := range []string{"orange", "a", "bananas"} {
		c.Args = []string{bin, other}
		if tern.Admits(&c, m.File) == "" {
			t.Errorf("%q is admitted", other)
		}
	}
}

// Of a run with AVX, whose instructions libVEX does not know, a schedule is made for the recorded input.
func TestLevelForOneInput(t *testing.T) {
	bin, dir := gcctest.File(t, "testdata/mapped.c", "-O1"), t.TempDir()
	c := config(dir, bin, writeText(t, dir, "recorded", "2abc"), "private")
	c.CPU = arch.V3
	m := memoize(t, c, tern.Options{})
	if m.Cause == nil || !slices.Contains(m.Pinned, "file(argv[1])") {
		t.Errorf("pinned %q because of %v", m.Pinned, m.Cause)
	}
	follows(t, c, m)
	writeText(t, dir, "recorded", "2xyz")
	if tern.Admits(&c, m.File) == "" {
		t.Error("another content is admitted")
	}
}
