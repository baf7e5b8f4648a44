package windows

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/windows"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRulesOfFiles(t *testing.T) {
	r, err := LoadRules(write(t, "programs: [a, b]\nports: [80]\nbegin: accept\nend: close\nfunction: tasks\n"))
	if err != nil || !slices.Equal(r.Programs, []string{"a", "b"}) || r.BeginOfTasks() != windows.AtAccept || r.EndOfTasks() != windows.AtClose {
		t.Fatalf("%+v, %v", r, err)
	}
	for text, want := range map[string]string{
		"ports: [80]":                       "programs",
		"programs: [a/b]":                   "programs",
		"programs: [a]\nbegin: write":       "begin",
		"programs: [a]\nend: never":         "end",
		"programs: [a]\nfunction: marks":    "function",
		"programs: [a]\nfunctions: tasks":   "functions",
		"programs: [a]\nports: [123456789]": "ports",
	} {
		if _, err := LoadRules(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := LoadRules("apache"); err == nil || !strings.Contains(err.Error(), "apache2") {
		t.Errorf("an unknown server: %v", err)
	}
	for _, name := range BuiltinRules() {
		if r, err := LoadRules(name); err != nil || len(r.Programs) == 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestOrdersOfFiles(t *testing.T) {
	s := windows.NewStore()
	s.Seed, s.Cores = 7, 3
	s.Add(5, windows.Schedule{Turns: []windows.Point{{Thread: "1", Kind: sched.AtEnter, What: 9}, {Thread: "1.2", Kind: sched.AtWake}}})
	s.Add(6, windows.Schedule{})
	s.Add(5, windows.Schedule{
		Turns: []windows.Point{{Thread: "1", Kind: sched.AtCall, What: 232}},
		Constraints: []windows.Constraint{{
			First:  windows.Place{Thread: "1", Cuts: 3, PC: 0x4010a0, Occurrence: 2},
			Second: windows.Place{Thread: "1.2"},
		}},
	})
	path := filepath.Join(t.TempDir(), "orders")
	if err := SaveStore(path, s); err != nil {
		t.Fatal(err)
	}
	read, err := LoadStore(path)
	if err != nil || read.Seed != 7 || read.Cores != 3 || read.Len() != 3 || read.Keys() != 2 {
		t.Fatalf("%+v, %v", read, err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := SaveStore(again, read); err != nil {
		t.Fatal(err)
	}
	one, _ := os.ReadFile(path)
	two, _ := os.ReadFile(again)
	if string(one) != string(two) {
		t.Errorf("a file that was read is written as\n%s, want\n%s", two, one)
	}
	for at := range one {
		damaged := slices.Clone(one)
		damaged[at] ^= 1
		if _, err := LoadStore(write(t, string(damaged))); err == nil {
			t.Fatalf("a file with a changed byte %d is read", at)
		}
		if _, err := LoadStore(write(t, string(one[:at]))); err == nil {
			t.Fatalf("a file cut after %d bytes is read", at)
		}
	}
}
