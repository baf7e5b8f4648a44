package explore_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
	litmusexplore "github.com/heddle-dmt/heddle/memmodel/explore"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// A test of these is a text: threads between bars, and of each the operations Wx1 (store 1 to x), Rx (load
// x), Xx1 (exchange x with 1) and F (MFENCE). It is made a litmus test and a program.
var classics = map[string]string{
	"SB":          "Wx1 Ry | Wy1 Rx",
	"SB+mfences":  "Wx1 F Ry | Wy1 F Rx",
	"SB+mfence":   "Wx1 F Ry | Wy1 Rx",
	"SB+xchgs":    "Xx1 Ry | Xy1 Rx",
	"MP":          "Wx1 Wy1 | Ry Rx",
	"MP+mfence":   "Wx1 F Wy1 | Ry Rx",
	"LB":          "Rx Wy1 | Ry Wx1",
	"R":           "Wx1 Wy1 | Wy2 Rx",
	"S":           "Wx2 Wy1 | Ry Wx1",
	"2+2W":        "Wx1 Wy2 | Wy1 Wx2",
	"CoRR":        "Wx1 | Rx Rx",
	"CoWW":        "Wx1 Wx2 | Rx Rx",
	"forwarding":  "Wx1 Rx Ry | Wy1 Ry Rx",
	"WRC":         "Wx1 | Rx Wy1 | Ry Rx",
	"IRIW":        "Wx1 | Wy1 | Rx Ry | Ry Rx",
	"three":       "Wx1 Wx2 Ry | Wy1 Rx Wy2",
	"own stores":  "Wx1 Wy1 Rx | Wx2 Ry",
	"two buffers": "Wx1 Wx2 Wy1 Rz | Wz1 Ry Rx",
}

var registers = []string{"eax", "ebx", "ecx", "edx"}

// operations calls visit for each operation of a thread, with the number of its register or -1.
func operations(thread string, visit func(op byte, at, value string, register int)) {
	register := 0
	for _, o := range strings.Fields(thread) {
		at, value := "", ""
		if len(o) > 1 {
			at, value = o[1:2], o[2:]
		}
		if o[0] == 'R' || o[0] == 'X' {
			visit(o[0], at, value, register)
			register++
		} else {
			visit(o[0], at, value, -1)
		}
	}
}

// litmusText is the litmus test of a text, whose condition names the observed values.
func litmusText(text string) string {
	var columns [][]string
	var observed []string
	rows := 0
	for n, thread := range strings.Split(text, "|") {
		var list []string
		operations(thread, func(op byte, at, value string, register int) {
			switch op {
			case 'W':
				list = append(list, fmt.Sprintf("movl $%s,(%s)", value, at))
			case 'R':
				list = append(list, fmt.Sprintf("movl (%s),%%%s", at, registers[register]))
			case 'X':
				list = append(list, fmt.Sprintf("movl $%s,%%%s", value, registers[register]), fmt.Sprintf("xchgl %%%s,(%s)", registers[register], at))
			case 'F':
				list = append(list, "mfence")
			}
			if register >= 0 {
				observed = append(observed, fmt.Sprintf("%d:r%s=9", n, registers[register][1:]))
			}
		})
		columns = append(columns, list)
		rows = max(rows, len(list))
	}
	for _, v := range []string{"x", "y", "z"} {
		if strings.Contains(text, v) {
			observed = append(observed, v+"=9")
		}
	}
	var b strings.Builder
	b.WriteString("X86_64 test\n{ }\n")
	for row := -1; row < rows; row++ {
		for n, c := range columns {
			cell := ""
			switch {
			case row < 0:
				cell = fmt.Sprintf("P%d", n)
			case row < len(c):
				cell = c[row]
			}
			end := " |"
			if n == len(columns)-1 {
				end = " ;\n"
			}
			fmt.Fprintf(&b, " %-20s%s", cell, end)
		}
	}
	fmt.Fprintf(&b, "exists (%s)\n", strings.Join(observed, ` /\ `))
	return b.String()
}

// programText is the program of a text: the last thread prints the values that the litmus test observes.
func programText(text string) string {
	var b, print strings.Builder
	threads := strings.Split(text, "|")
	fmt.Fprintf(&b, "#include \"threads.h\"\nstatic int x, y, z, left = %d, r[%d][4];\n", len(threads), len(threads))
	b.WriteString("static void thread(long number) {\n switch (number) {\n")
	for n, thread := range threads {
		fmt.Fprintf(&b, " case %d: {\n", n)
		count := 0
		operations(thread, func(op byte, at, value string, register int) {
			switch op {
			case 'W':
				fmt.Fprintf(&b, "  STORE(%s, %s);\n", at, value)
			case 'R':
				fmt.Fprintf(&b, "  int r%d = LOAD(%s);\n", register, at)
			case 'X':
				fmt.Fprintf(&b, "  int r%d = __atomic_exchange_n(&%s, %s, __ATOMIC_SEQ_CST);\n", register, at, value)
			case 'F':
				b.WriteString("  __asm__ volatile(\"mfence\" ::: \"memory\");\n")
			}
			if register >= 0 {
				fmt.Fprintf(&print, "  text[n++] = '0' + LOAD(r[%d][%d]);\n", n, register)
				count++
			}
		})
		for i := range count {
			fmt.Fprintf(&b, "  STORE(r[%d][%d], r%d);\n", n, i, i)
		}
		b.WriteString("  break;\n }\n")
	}
	for _, v := range []string{"x", "y", "z"} {
		if strings.Contains(text, v) {
			fmt.Fprintf(&print, "  text[n++] = '0' + LOAD(%s);\n", v)
		}
	}
	b.WriteString(" }\n if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) == 0) {\n  char text[32]; int n = 0;\n")
	b.WriteString(print.String())
	b.WriteString("  call(1, 1, (word)text, n, 0, 0);\n }\n}\nstatic void run(void) {\n")
	for n := range threads {
		fmt.Fprintf(&b, " create(%d);\n", n)
	}
	b.WriteString("}\n")
	return b.String()
}

var observedValue = regexp.MustCompile(`=(\d+);`)

// litmusOutcomes returns the outcomes of a litmus test, as the program prints them.
func litmusOutcomes(t *testing.T, m *litmusexplore.Machine, text string, model memmodel.Model) []string {
	t.Helper()
	test, err := litmus.Parse("test.litmus", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	codes, err := litmus.Assemble([]*litmus.Test{test})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Explore(test, codes[0], litmusexplore.Options{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Outcomes.Write(&b); err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, line := range strings.Split(b.String(), "\n") {
		values := ""
		for _, v := range observedValue.FindAllStringSubmatch(line, -1) {
			values += v[1]
		}
		if values != "" {
			set[values] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// freestanding compiles a program without a C library.
func freestanding(t testing.TB, source string, flags ...string) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	flags = append([]string{"-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fcf-protection=none", "-fno-pie", "-no-pie", "-I", dir}, flags...)
	if filepath.Ext(source) == ".c" {
		return gcctest.File(t, filepath.Join("testdata", source), flags...)
	}
	return gcctest.C(t, source, flags...)
}

// exploreProgram explores a program.
func exploreProgram(t testing.TB, program string, o explore.Options) *explore.Report {
	t.Helper()
	r, err := exploreRun(t, o, program)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exploreRun(t testing.TB, o explore.Options, args ...string) (*explore.Report, error) {
	t.Helper()
	c := machine.DefaultConfig()
	c.Args, c.Cores = args, 20
	base, err := find.NewBase(c, nil, find.Options{Trace: filepath.Join(t.TempDir(), "failure.trace")})
	if err != nil {
		t.Fatal(err)
	}
	return explore.Explore(context.Background(), base, o)
}

// compareWithLitmus compares the outcomes of a litmus test with those of its program.
func compareWithLitmus(t *testing.T, m *litmusexplore.Machine, text string) {
	t.Helper()
	program := freestanding(t, programText(text))
	for _, model := range memmodel.Models() {
		want := litmusOutcomes(t, m, litmusText(text), model)
		r := exploreProgram(t, program, explore.Options{Model: model})
		var got []string
		for _, o := range r.Outputs {
			got = append(got, o.Text)
		}
		slices.Sort(got)
		if !r.Complete || r.Redundant > 0 || !slices.Equal(got, want) {
			t.Errorf("%s under %v: outcomes %v, want %v (%d executions, %d redundant)", text, model, got, want, r.Executions, r.Redundant)
		}
	}
}

func newLitmusMachine(t *testing.T) *litmusexplore.Machine {
	t.Helper()
	m, err := litmusexplore.NewMachine(engines.Auto)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// TestLitmus: programs have the outcomes of the litmus tests from which they were made.
func TestLitmus(t *testing.T) {
	m := newLitmusMachine(t)
	for _, name := range slices.Sorted(maps.Keys(classics)) {
		t.Run(name, func(t *testing.T) { compareWithLitmus(t, m, classics[name]) })
	}
}

// TestRandomLitmus is TestLitmus with random tests.
func TestRandomLitmus(t *testing.T) {
	m := newLitmusMachine(t)
	r := rand.New(rand.NewPCG(1, 23))
	for range testsize.Runs(3, 12, 200) {
		var threads []string
		for range 2 + r.IntN(2) {
			var ops []string
			for range 1 + r.IntN(3) {
				at := string("xy"[r.IntN(2)])
				value := fmt.Sprint(1 + r.IntN(2))
				ops = append(ops, []string{"W" + at + value, "W" + at + value, "R" + at, "R" + at, "X" + at + value, "F"}[r.IntN(6)])
			}
			threads = append(threads, strings.Join(ops, " "))
		}
		text := strings.Join(threads, " | ")
		if strings.ContainsAny(text, "RX") {
			compareWithLitmus(t, m, text)
		}
	}
}
