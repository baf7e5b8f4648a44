package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Bounds of packages, in lines of Go without tests.
const (
	largestPackage  = 5_000
	largestUntested = 300
)

// largePackages may be larger: Linux's system calls and its files are one subject each.
var largePackages = []string{"guest/kernel", "guest/vfs"}

// TestPackageSizes: a package is of a size that one can read, and has tests beside its code
// unless it is small.
func TestPackageSizes(t *testing.T) {
	lines, tested := map[string]int{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			tested[f.dir] = true
			continue
		}
		text, err := os.ReadFile(filepath.Join(moduleRoot, f.path))
		if err != nil {
			t.Fatal(err)
		}
		lines[f.dir] += bytes.Count(text, []byte("\n"))
	}
	for dir, n := range lines {
		if n > largestPackage && !slices.Contains(largePackages, dir) {
			t.Errorf("%s has %d lines, more than %d", dir, n, largestPackage)
		}
		if n > largestUntested && !tested[dir] {
			t.Errorf("%s has %d lines and no test", dir, n)
		}
	}
}

// TestSchedulersAreFreeOfLinux: nothing that package sched or a package below it needs imports
// golang.org/x/sys/unix.
func TestSchedulersAreFreeOfLinux(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./sched/...")
	list.Dir = moduleRoot
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, modulePath+"/sched") {
		t.Fatalf("no package sched in %v", packages)
	}
	if slices.Contains(packages, "golang.org/x/sys/unix") {
		t.Error("a package under sched, or one that it imports, imports golang.org/x/sys/unix")
	}
}

// TestIdentitiesAreALeaf: emu/arch, whose types every package may use, imports nothing of heddle.
func TestIdentitiesAreALeaf(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.dir != "emu/arch" || f.test {
			continue
		}
		for _, path := range imported(f) {
			if strings.HasPrefix(path, modulePath) {
				t.Errorf("%s imports %s", f.path, path)
			}
		}
	}
}
