package syncops_test

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
)

// customOf is the list of testdata/custom.c's operations. The gate is static:
// it is named by its address.
func customOf(t *testing.T, bin string) []syncops.Custom {
	t.Helper()
	list := fmt.Sprintf(`
operations:
  - name: spin_take
    object: 1
    effect: acquire
  - name: spin_give
    file: custom
    object: 1
    effect: release
  - name: spin_try
    object: 2
    effect: acquire
    at: return
    success: nonzero
  - name: the_gate
    file: custom
    address: %#x
    effect: both
  - name: spin_take
    file: some-other-file
    effect: release
`, gcctest.Symbols(t, bin)["gate"].Value)
	name := filepath.Join(t.TempDir(), "operations.yaml")
	if err := os.WriteFile(name, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	custom, err := syncops.LoadCustom(name)
	if err != nil {
		t.Fatal(err)
	}
	return custom
}

// customSayings are the custom operations in the words of testdata/custom.c.
func (r *recording) customSayings(at map[string]elf.Symbol) string {
	names := map[string]string{
		fmt.Sprintf("1:custom+%#x", at["first"].Value): "first", fmt.Sprintf("1:custom+%#x", at["second"].Value): "second",
		"function:the_gate": "gate",
	}
	var b strings.Builder
	for thread := 1; thread <= 2; thread++ {
		for _, e := range r.syncs {
			name := names[r.objects[e.Object].Name]
			if r.threads[e.Thread] != fmt.Sprint("1.", thread) || e.Phase != event.Return || name == "" {
				continue
			}
			fmt.Fprintf(&b, "%d %v %s", thread, e.Op, name)
			if name == "second" && e.Op == event.OpCustomAcquire {
				fmt.Fprintf(&b, " %d", e.Result)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestCustomOperations(t *testing.T) {
	bin := build(t, "custom.c")
	c := config(bin)
	r := record(t, c, machine.SyncRecord{Custom: customOf(t, bin)})
	if got := r.customSayings(gcctest.Symbols(t, bin)); got != r.out {
		t.Error(firstDifference(got, r.out))
	}
	r.nested(t)
	for _, e := range r.syncs {
		want := event.Effects(0)
		name := r.objects[e.Object].Name
		switch {
		case e.Op == event.OpMutexLock && e.Effects&event.Inner == 0:
			t.Errorf("a lock that is part of the gate is recorded: %+v", e)
		case e.Op == event.OpCustomAcquire && e.Phase == event.Return && (e.Result != 0 || strings.HasSuffix(name, fmt.Sprintf("%#x", gcctest.Symbols(t, bin)["first"].Value))):
			want = event.Acquire
		case e.Op == event.OpCustomRelease && e.Phase == event.Enter, e.Op == event.OpCustom && e.Phase == event.Enter:
			want = event.Release
		case e.Op == event.OpCustom:
			want = event.Acquire
		}
		custom := e.Op == event.OpCustomAcquire || e.Op == event.OpCustomRelease || e.Op == event.OpCustom
		if custom && e.Effects != want {
			t.Errorf("effects %d of %v %v %s (result %d), want %d", e.Effects, e.Op, e.Phase, name, e.Result, want)
		}
	}
}

// TestDebugLinks: the names of a stripped program are found in the file that was
// split off, beside it or in .debug, by its checksum; and not in another.
func TestDebugLinks(t *testing.T) {
	bin := build(t, "custom.c", "-Wl,--build-id=none")
	at, custom := gcctest.Symbols(t, bin), customOf(t, bin)
	for name, found := range map[string]bool{".": true, ".debug": true, "elsewhere": false} {
		dir := t.TempDir()
		stripped := filepath.Join(dir, "custom")
		symbols := filepath.Join(dir, name, "custom.symbols")
		tool(t, "mkdir", "-p", filepath.Dir(symbols))
		tool(t, "objcopy", "--only-keep-debug", bin, symbols)
		tool(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+symbols, bin, stripped)
		r := record(t, config(stripped), machine.SyncRecord{Custom: custom[:3]})
		got := strings.Count(r.customSayings(at), "\n")
		if want := strings.Count(r.out, "\n") - strings.Count(r.out, "gate\n"); found && got != want || !found && got != 0 {
			t.Errorf("symbols in %s: %d operations", name, got)
		}
	}
	damaged := filepath.Join(t.TempDir(), "custom")
	symbols := filepath.Join(filepath.Dir(damaged), "custom.symbols")
	tool(t, "objcopy", "--only-keep-debug", bin, symbols)
	tool(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+symbols, bin, damaged)
	tool(t, "sh", "-c", "echo >>"+symbols)
	if r := record(t, config(damaged), machine.SyncRecord{Custom: custom[:3]}); r.customSayings(at) != "" {
		t.Error("a file with another checksum was believed")
	}
}

func TestCustomListErrors(t *testing.T) {
	for text, want := range map[string]string{
		"operations:\n  - effect: acquire\n":                                "ops.yaml:2: operations[0].name is empty; allowed: the name of a function",
		"operations:\n  - name: f\n":                                        "ops.yaml:2: operations[0].effect is missing; allowed: acquire, release, both",
		"operations:\n  - name: f\n    effect: take\n":                      `ops.yaml:3: operations[0].effect is "take"; allowed: acquire, release, both`,
		"operations:\n  - name: f\n    effect: both\n    at: once\n":        `ops.yaml:4: operations[0].at is "once"; allowed: entry, return`,
		"operations:\n  - name: f\n    effect: both\n    object: 4\n":       "ops.yaml:4: operations[0].object is 4; allowed: 0 to 3",
		"operations:\n  - name: f\n    effect: both\n    address: 0x12\n":   "ops.yaml:2: operations[0].file is missing; allowed: the file that the address is in",
		"operations:\n  - name: f\n    effect: both\n    address: here\n":   `ops.yaml:4: operations[0].address is "here"; allowed: a number such as 0x1234`,
		"operations:\n  - name: f\n    effects: both\n":                     "ops.yaml:3: unknown field operations[0].effects; allowed here: name, file, address, object, effect, at, success, hint, count, turns",
		"operations:\n  - name: f\n    effect: both\n    success: always\n": `ops.yaml:4: operations[0].success is "always"; allowed: any, zero, nonzero, nonnegative`,
	} {
		name := filepath.Join(t.TempDir(), "ops.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := syncops.LoadCustom(name)
		var e *errs.Error
		if !errors.As(err, &e) || strings.TrimPrefix(err.Error(), filepath.Dir(name)+"/") != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestOpenMP reads the list that docs has for libgomp.
func TestOpenMP(t *testing.T) {
	custom, err := syncops.LoadCustom("../../docs/openmp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t, "openmp.c", "-fopenmp")
	r := record(t, config(bin), machine.SyncRecord{Custom: custom})
	if r.out != "40 40 40\n" {
		t.Errorf("output %q", r.out)
	}
	counts := map[string]int{}
	for _, e := range r.syncs {
		if e.Effects&event.Inner == 0 && (e.Phase == event.Enter || e.Phase == event.Whole) {
			name := r.objects[e.Object].Name
			if strings.HasPrefix(name, "1:") {
				name = "its object"
			}
			counts[fmt.Sprint(e.Op, " ", name)]++
		}
	}
	for name, n := range map[string]int{
		"custom_acquire function:GOMP_critical_start": 40, "custom_release function:GOMP_critical_end": 40,
		"custom_acquire its object": 80, "custom_release its object": 80, "custom function:GOMP_barrier": 4,
	} {
		if counts[name] != n {
			t.Errorf("%d of %s, want %d; all: %v", counts[name], name, n, counts)
		}
	}
}

// TestCustomInJSON: a list of operations comes back from JSON as it was.
func TestCustomInJSON(t *testing.T) {
	want := []syncops.Custom{
		{Name: "take", Object: 1, Effect: "acquire", At: "return", Success: "nonzero"},
		{Name: "gate", File: "server", Address: 0x12340, Effect: "both"},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got []syncops.Custom
	if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s became %+v, %v", text, got, err)
	}
}
