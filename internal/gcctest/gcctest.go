// Package gcctest compiles and assembles the small programs of tests.
package gcctest

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// C compiles a program's source with -pthread and returns the path of the executable.
// Later flags have precedence.
func C(t testing.TB, source string, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.c")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return File(t, path, flags...)
}

// File is C for a source in a file; the executable has its name, without the ending.
func File(t testing.TB, path string, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	args := append([]string{"-O1", "-pthread", "-o", bin, path}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %q: %v\n%s", args, err, out)
	}
	return bin
}

// Assemble returns the code of a source in Intel's syntax.
func Assemble(t testing.TB, source string) []byte {
	t.Helper()
	object := filepath.Join(t.TempDir(), "a.o")
	as := exec.Command("as", "-o", object, "-")
	as.Stdin = strings.NewReader(".intel_syntax noprefix\n" + source + "\n")
	if out, err := as.CombinedOutput(); err != nil {
		t.Fatalf("as: %v\n%s", err, out)
	}
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// Symbols are the symbols of an executable by name.
func Symbols(t testing.TB, bin string) map[string]elf.Symbol {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]elf.Symbol{}
	for _, s := range symbols {
		byName[s.Name] = s
	}
	return byName
}
