package calibrate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

// TestMeasure measures this host. The bounds are wide: any x86-64 processor of
// the last 20 years, virtual and busy ones included, is within them.
func TestMeasure(t *testing.T) {
	list, err := Measure(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	bounds := map[string][2]float64{
		"instruction": {1, 1}, "memory": {0, 100}, "divide": {1, 1000}, "sqrt": {1, 1000}, "transcendental": {5, 5000},
		"atomic": {1, 5000}, "fence": {1, 10_000}, "syscall": {20, 1e6}, "page_fault": {50, 1e7}, "context_switch": {0, 1e9},
		"sync": {0, 10_000}, "semaphore_wait": {1, 1e5}, "semaphore_wake": {100, 1e9}, "spin_check": {1, 1e9},
		"branch_count": {0, 1000}, "slot_check": {0, 1000}, "slot_call": {0, 1000}, "mhz": {200, 20_000},
	}
	for i, m := range list {
		if m.Field.Name != arch.CostFields()[i].Name {
			t.Fatalf("measurement %d is of %s, want %s", i, m.Field.Name, arch.CostFields()[i].Name)
		}
		if !m.Measured {
			t.Logf("%s: not measured", m.Field.Name)
			continue
		}
		if b, ok := bounds[m.Field.Name]; !ok || !(m.Value >= b[0] && m.Value <= b[1]) || math.IsNaN(m.Value) {
			t.Errorf("%s is %v %s, want %v", m.Field.Name, m.Value, m.Field.Unit(), b)
		}
	}
	checkLoadsBack(t, list)
}

// checkLoadsBack writes the file and reads it as --costs does.
func checkLoadsBack(t *testing.T, list []Measurement) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "costs.yaml")
	var b bytes.Buffer
	if err := Write(&b, "a processor", list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Costs arch.Costs `mapstructure:"costs"`
	}
	if _, err := yamlfile.Load(path, &file); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	for i := range list {
		m := &list[i]
		if got := m.Field.In(file.Costs); got != m.Cost() {
			t.Errorf("%s is %d in the file, want %d", m.Field.Name, got, m.Cost())
		}
	}
	if err := file.Costs.Validate(); err != nil {
		t.Error(err)
	}
}

func TestCost(t *testing.T) {
	f := arch.CostField{Name: "x", Default: 7, Least: 1, Most: 100}
	for want, m := range map[uint32]Measurement{
		7:   {Field: f},
		1:   {Field: f, Measured: true, Value: 0.2},
		3:   {Field: f, Measured: true, Value: 2.5},
		100: {Field: f, Measured: true, Value: 1e30},
	} {
		if got := m.Cost(); got != want {
			t.Errorf("%+v costs %d, want %d", m, got, want)
		}
	}
}

func TestCyclesFromTimes(t *testing.T) {
	list := inCycles(map[string][]float64{"cycle": {0.5, 0.25, 9}, "divide": {3, 100, 5, 10, 0}})
	want := map[string]float64{"instruction": 1, "divide": 10, "mhz": 2000}
	for _, m := range list {
		if v, ok := want[m.Field.Name]; ok != m.Measured || m.Value != v {
			t.Errorf("%s: %v (measured %v), want %v", m.Field.Name, m.Value, m.Measured, v)
		}
	}
}

func TestErrors(t *testing.T) {
	broken := t.TempDir()
	script := "#!/bin/sh\necho 'x.c:1: no luck' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(broken, "gcc"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, temp string
		want             error
		text             string
	}{
		{"no compiler", t.TempDir(), t.TempDir(), errCompiler, "no C compiler is found (cc, gcc, clang)"},
		{"compiler fails", broken, t.TempDir(), errCompile, "gcc does not compile instructions.c: x.c:1: no luck"},
		{"no folder", os.Getenv("PATH"), filepath.Join(broken, "none"), errFolder, "no room for the compiled programs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			t.Setenv("TMPDIR", c.temp)
			_, err := Measure(context.Background(), 1)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %s", err, c.text)
			}
		})
	}
}

func TestProgramErrors(t *testing.T) {
	for name, c := range map[string]struct{ script, text string }{
		"crash":    {"echo no pipe >&2; exit 1", "the program p failed: no pipe"},
		"nonsense": {"echo divide much", `invalid syntax`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "p"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			err := measure(context.Background(), dir, "p", map[string][]float64{})
			if !errors.Is(err, errProgram) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %s", err, c.text)
			}
		})
	}
}
