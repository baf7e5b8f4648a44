package tern_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// The files of a folder that an argument names are inputs, by their names: other bytes are admitted where they decide
// nothing, or the sum of the digits is the same, and neither another sum, nor another side of a size, nor other names.
func TestFilesOfFolder(t *testing.T) {
	bin := gcctest.File(t, "testdata/folder.c", "-O1")
	run := func(first, second, name string) machine.Config {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "tree", "part"), 0o700); err != nil {
			t.Fatal(err)
		}
		writeText(t, dir, "tree/a", first)
		writeText(t, dir, "tree/part/"+name, second)
		c := config(dir, bin, "/inputs/tree")
		c.Mounts = []machine.Mount{{Host: dir, Guest: "/inputs"}}
		return c
	}
	m := memoize(t, run("1abc", "2defg", "b"), tern.Options{})
	if len(m.Pinned) > 0 {
		t.Errorf("pinned %q", m.Pinned)
	}
	for i, other := range []struct {
		first, second, name string
		admitted            bool
	}{
		{"1xyz", "2defg", "b", true},
		{"1abc", "2tuvwx", "b", true},
		{"1xyzxyz", "2zyxzyx", "b", true},
		{"2abc", "1defg", "b", true},
		{"1abc", "3defg", "b", false},
		{"1abc", "2defgdefgdefgdefgdefgdefg", "b", false},
		{"1abc", "2defg", "c", false},
	} {
		c := run(other.first, other.second, other.name)
		c.Seed, c.Cores = uint64(i), 1+i%3
		switch why := tern.Admits(&c, m.File); {
		case (why == "") != other.admitted:
			t.Errorf("%+v: %q", other, why)
		case why == "":
			result, out := enforced(t, c, m)
			native, err := exec.Command(bin, filepath.Join(c.Mounts[0].Host, "tree")).Output()
			if !result.Schedule.Followed || err != nil || out != string(native) {
				t.Errorf("%+v: %s; %q, natively %q: %v", other, result.Schedule.Reason, out, native, err)
			}
		}
	}
}

// An argument that names a folder is fixed: with another folder, or none, the program opens other files. The seed,
// which the program then does not use, may have any value.
func TestFolderIsFixed(t *testing.T) {
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
