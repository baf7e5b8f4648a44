package tern_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// The contents of a folder are no input, so an argument that names one is fixed: with
// another folder, or none, the program opens other files. The seed, which the program then
// does not use, may have any value.
func TestFolderIsNoInput(t *testing.T) {
	dir, vacant := folder(t), t.TempDir()
	c := config(t.TempDir(), built(t, "scanner"), "-p", "2", "-s", "1", "-w", "thread", "-d", dir)
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir}, machine.Mount{Host: vacant, Guest: vacant})
	m := memoize(t, c, tern.Options{})
	c.Args = slices.Clone(c.Args)
	c.Args[4] = "7"
	follows(t, c, m)
	for _, other := range []string{vacant, dir + "d"} {
		c.Args[8] = other
		if tern.Admits(&c, m.File) == "" {
			t.Errorf("%s is admitted", other)
		}
	}
}

// A program may be named by a symbolic link, as Debian's alternatives are: its file is the link's target, and no
// other file that must be unchanged.
func TestProgramIsLink(t *testing.T) {
	dir := t.TempDir()
	bin, link := filepath.Join(dir, "program"), filepath.Join(dir, "link")
	text, err := os.ReadFile(gcctest.File(t, "testdata/strings.c"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(bin, text, 0o755), os.Symlink("program", link)); err != nil {
		t.Fatal(err)
	}
	c := config(dir, link, "ab", "off", "2")
	m := memoize(t, c, tern.Options{})
	if sum := tern.FileSHA256(bin); m.File.Program != sum {
		t.Errorf("the program is %q, not %q", m.File.Program, sum)
	}
	if why := tern.Admits(&c, m.File); why != "" {
		t.Errorf("the recorded input is not admitted: %s", why)
	}
}

// A file that no argument names must be unchanged where the guest sees it: if another folder is mounted there, that
// folder's file counts, and not the one of the recorded run.
func TestOtherFolderIsMounted(t *testing.T) {
	bin := gcctest.File(t, "testdata/reads.c")
	mounted := func(content string) machine.Config {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "data"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c := config(t.TempDir(), bin)
		c.Dir, c.Mounts = "/data", append(c.Mounts, machine.Mount{Host: dir, Guest: "/data"})
		return c
	}
	m := memoize(t, mounted("2"), tern.Options{})
	for content, admitted := range map[string]bool{"2": true, "3": false} {
		c := mounted(content)
		if why := tern.Admits(&c, m.File); (why == "") != admitted {
			t.Errorf("a folder with %q: %q", content, why)
		}
	}
}
