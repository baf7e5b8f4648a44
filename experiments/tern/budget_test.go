package tern_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Where the budget ends, the schedule is for the recorded content of the inputs that most depended on, and other inputs
// stay as free as they were: the file is pinned, the number of threads may be written otherwise. What a program
// may read, another file with the same content, is admitted; one with another byte is not.
func TestBudgetPinsTheHeaviestInput(t *testing.T) {
	bin, dir := gcctest.File(t, "testdata/sum.c", "-O2"), t.TempDir()
	data := bytes.Repeat([]byte("a man, a plan, a canal: panama; "), 12)
	other := slices.Clone(data)
	other[len(other)-1] = '!'
	for name, content := range map[string][]byte{"one": data, "two": data, "six": other, "ten": data[1:]} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(args ...string) machine.Config { return config(dir, bin, args[0], filepath.Join(dir, args[1])) }
	path := record(t, in("2", "one"))
	everything := []string{"argv[1]", "argv[2]", "file(argv[2])"}
	for _, x := range []struct {
		name   string
		budget tern.Budget
		pinned []string
	}{
		{"no bound", tern.Budget{}, nil},
		{"enough", tern.DefaultBudget(), nil},
		{"few terms", tern.Budget{Terms: 2000}, []string{"file(argv[2])"}},
		{"few operations", tern.Budget{Operations: 1000}, []string{"file(argv[2])"}},
		{"hardly any term", tern.Budget{Terms: 1}, []string{"argv[1]", "file(argv[2])"}}, // its name decides nothing
		{"few instructions", tern.Budget{Instructions: 1000}, everything},
		{"few steps of slicing", tern.Budget{Slicing: 1000}, everything},
		{"no time", tern.Budget{Time: 1}, everything},
		{"few questions", tern.Budget{Questions: 1}, nil},
	} {
		m, err := tern.Make(context.Background(), path, tern.Options{Budget: x.budget})
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.Pinned, x.pinned) || m.TimeUp != (x.budget.Time > 0) || (m.BudgetText() != "") != (m.Pinned != nil) {
			t.Errorf("%s: pinned %q, time up %v, want %q; %q", x.name, m.Pinned, m.TimeUp, x.pinned, m.BudgetText())
		}
		if strings.Contains(set.String(), "argv[2] has the recorded content") != (x.pinned != nil) {
			t.Errorf("%s: the content is not among the preconditions, or should not be: %.300s", x.name, set)
		}
		for args, admitted := range map[[2]string]bool{
			{"2", "one"}: true, {"02", "one"}: !slices.Contains(x.pinned, "argv[1]"), {"2", "two"}: !slices.Contains(x.pinned, "argv[2]"),
			{"3", "one"}: false, {"2", "six"}: false, {"2", "ten"}: false, {"2", "none"}: false,
		} {
			with := in(args[0], args[1])
			why := tern.Admits(&with, m.File)
			if (why == "") != admitted && !(x.pinned == nil && args[1] == "six") {
				t.Errorf("%s: %q: %q", x.name, args, why)
			}
			if why == "" {
				follows(t, with, m)
			}
		}
	}
}

// Of a run that is longer than the budget no schedule is made, and the sentence names the program.
func TestBudgetOfTheRun(t *testing.T) {
	bin, dir := gcctest.File(t, "testdata/sum.c", "-O2"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one"), []byte("abandon"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := record(t, config(dir, bin, "2", "one"))
	m, err := tern.Make(t.Context(), path, tern.Options{Budget: tern.Budget{Run: 1000}})
	if m != nil || err == nil || !strings.Contains(err.Error(), bin) {
		t.Errorf("%v, %v", m, err)
	}
}

// The same budget gives the same preconditions, and a computation that its context ends gives none.
func TestBudgetIsDeterministic(t *testing.T) {
	bin, dir := gcctest.File(t, "testdata/sum.c", "-O2"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one"), bytes.Repeat([]byte("abandon "), 30), 0o600); err != nil {
		t.Fatal(err)
	}
	path := record(t, config(dir, bin, "2", "one"))
	budget := tern.Budget{Terms: 900, Questions: 5, Time: time.Hour}
	var first []string
	for range 2 {
		m, err := tern.Make(context.Background(), path, tern.Options{Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !slices.Equal(first, m.File.Preconditions) {
			t.Errorf("%q, and %q before", m.File.Preconditions, first)
		}
		first = m.File.Preconditions
	}
	for _, stage := range []string{"ordering", "following the schedule", "following the run", "slicing", "simplifying"} {
		ended, cancel := context.WithCancel(context.Background())
		seen := false
		_, err := tern.Make(ended, path, tern.Options{Budget: budget, Progress: func(what string) {
			if strings.HasPrefix(what, stage) {
				seen = true
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || !seen {
			t.Errorf("a context that ends while %s: %v (%t)", stage, err, seen)
		}
		cancel()
	}
}
