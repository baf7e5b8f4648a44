package debuginfo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// TestStrippedGo: a program of Go from which all symbols and debug information were taken has the functions and lines that
// they gave, also one that may be loaded anywhere.
func TestStrippedGo(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go: install the package golang")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(len(fmt.Sprint(1))) }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"exe", "pie"} {
		whole, stripped := filepath.Join(dir, mode), filepath.Join(dir, mode+"-stripped")
		for _, command := range [][]string{
			{"go", "build", "-buildmode=" + mode, "-o", whole, source},
			{"strip", "--strip-all", "-o", stripped, whole},
		} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", command, err, out)
			}
		}
		want, err := debuginfo.Open(whole)
		if err != nil {
			t.Fatal(err)
		}
		got, err := debuginfo.Open(stripped)
		if err != nil {
			t.Fatal(err)
		}
		if got.HasSymbolTable {
			t.Fatal("strip has left symbols")
		}
		functions := 0
		for _, s := range want.Symbols() {
			if s.Kind != debuginfo.Function || !strings.HasPrefix(s.Name(), "fmt.") && !strings.HasPrefix(s.Name(), "main.") {
				continue
			}
			functions++
			for _, addr := range []uint64{s.Addr, s.Addr + s.Size/2} {
				f, offset := got.FunctionAt(addr)
				if f == nil || f.Name() != s.Name() || offset != addr-s.Addr {
					t.Errorf("%s: %#x is in %v at %d, not in %s", mode, addr, f, offset, s.Name())
				}
			}
			file, line, _ := want.Line(s.Addr)
			if gotFile, gotLine, _ := got.Line(s.Addr); gotFile != file || gotLine != line {
				t.Errorf("%s: %s is in %s:%d, not in %s:%d", mode, s.Name(), gotFile, gotLine, file, line)
			}
		}
		if functions < 20 {
			t.Errorf("%s: %d functions", mode, functions)
		}
	}
}
