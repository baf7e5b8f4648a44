package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// self returns the file of the test, which has everything that the command has.
func self(t *testing.T) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLibrariesLoadedLate reads the libraries and symbols that the dynamic linker looks up at the start.
func TestLibrariesLoadedLate(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere the libraries are linked")
	}
	file, err := elf.Open(self(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range libraries {
		for _, late := range []string{"libz3", "libunicorn", "libstdc++"} {
			if strings.HasPrefix(name, late) {
				t.Errorf("the command needs %s at its start", name)
			}
		}
	}
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "Z3_") || strings.HasPrefix(s.Name, "uc_") {
			t.Errorf("package dynlib lacks %s: go generate ./internal/dynlib", s.Name)
		}
	}
}

// TestUnusableLibrary gives the command a library without the functions.
func TestUnusableLibrary(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere the libraries are linked")
	}
	found, err := filepath.Glob("/usr/lib/*/libm.so.6")
	if err != nil || len(found) == 0 {
		t.Fatal("no libm.so.6", err)
	}
	other, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libunicorn.so.2"), other, 0o644); err != nil {
		t.Fatal(err)
	}
	heddle := filepath.Join(dir, "heddle")
	if err := os.Symlink(self(t), heddle); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(heddle, "doctor")
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
	out, _ := c.CombinedOutput()
	if status := c.ProcessState.ExitCode(); status != exitFailure {
		t.Errorf("status %d, want %d", status, exitFailure)
	}
	if text := string(out); !strings.HasPrefix(text, "heddle: cannot load the library libunicorn.so.2, of Debian's package libunicorn2 or libunicorn2t64: ") {
		t.Errorf("it says %q", text)
	}
}
