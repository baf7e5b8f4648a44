package suite

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

var update = flag.Bool("update", false, "bring program.yaml, measured.json and docs/programs.md up to date")

// timeLimit ends a program that hangs although it should not. It is no measure of speed.
const timeLimit = 15 * time.Minute

// slots bounds how many programs run at once in one test process.
var slots = make(chan struct{}, runtime.NumCPU())

// quick are the programs of the smallest test size: one of each kind.
var quick = []string{"fft", "racey", "scanner", "bounded-buffer", "benign-double-check", "message"}

// result is the result of a run.
type result struct {
	stdout, stderr string
	status         int // exit status, or 128+n after a death by signal n
	timedOut       bool
	took           time.Duration // processor time of all threads
}

func (r result) String() string {
	return fmt.Sprintf("status %d, timed out %v\nstdout:\n%s\nstderr:\n%s", r.status, r.timedOut, r.stdout, r.stderr)
}

// outcome is the class of the result of a run that should print want.
func (r result) outcome(want string) Outcome {
	switch {
	case r.timedOut:
		return Hang
	case r.status == 128+int(syscall.SIGABRT):
		return Assertion
	case r.status == 128+int(syscall.SIGSEGV), r.status == 128+int(syscall.SIGBUS):
		return Crash
	case r.status != 0:
		return Wrong
	case want != "" && r.stdout != want:
		return Different
	}
	return Correct
}

// run runs a command in an empty folder with a fixed environment and further
// variables. A limit below timeLimit is one of processor time.
func run(t testing.TB, limit time.Duration, env []string, command ...string) result {
	t.Helper()
	slots <- struct{}{}
	leave := sync.OnceFunc(func() { <-slots })
	defer leave()
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=/", "LC_ALL=C", "TMPDIR=" + cmd.Dir}, env...)
	// Tools such as valgrind start children, which must end with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		if limit < timeLimit {
			go func() {
				if waitForHang(ctx, cmd.Process.Pid, limit, leave) {
					cancel()
				}
			}()
		}
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		t.Fatalf("%s: %v", command[0], err)
	}
	r := result{
		stdout: stdout.String(), stderr: stderr.String(), took: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		status: cmd.ProcessState.ExitCode(), timedOut: ctx.Err() != nil,
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.status = 128 + int(ws.Signal())
	}
	return r
}

func build(t testing.TB, p Program, v Variant) string {
	t.Helper()
	path, err := p.Build(v)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// turn is the place of a program in the suite, which selects its share of lists that
// the programs sample in rotation.
func turn(p Program) int {
	all, err := All()
	if err != nil {
		panic("bug: " + err.Error())
	}
	return slices.IndexFunc(all, func(o Program) bool { return o.Name == p.Name })
}

// each runs a parallel subtest for every program that has the form.
func each(t *testing.T, form Form, f func(t *testing.T, p Program)) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Has(form) && (testsize.Pick(false, true, true) || slices.Contains(quick, p.Name)) {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				f(t, p)
			})
		}
	}
}

// oneOfThree leaves two of three programs to the large test size. It is for tests of the programs themselves by other
// tools, natively, which take long.
func oneOfThree(t *testing.T, p Program) {
	t.Helper()
	if !testsize.Long() && turn(p)%3 != 0 {
		t.Skip("left to make long")
	}
}

// eachBug runs a parallel subtest for every program whose buggy form fails under
// sequential consistency.
func eachBug(t *testing.T, f func(t *testing.T, p Program)) {
	each(t, Buggy, func(t *testing.T, p Program) {
		if p.Kind != Memory {
			f(t, p)
		}
	})
}

// required are the programs that the papers name, or that stand for a row of
// their tables.
var required = []string{
	"fft", "lu-contig", "lu-non-contig", "radix", "cholesky", "barnes", "fmm", "ocean",
	"water-nsquared", "water-spatial", "raytrace", "volrend", "radiosity",
	"blackscholes", "swaptions", "streamcluster", "racey",
	"compressor", "scanner", "downloader", "bounded-buffer", "string-buffer",
	"apache-21287", "apache-25520", "apache-45605",
	"mysql-644", "mysql-791", "mysql-2011", "mysql-3596", "mysql-12848", "glibc-12486",
	"frost-figure-1a", "frost-figure-1b", "frost-figure-3",
	"benign-user-synchronization", "benign-redundant-write", "benign-double-check", "benign-approximate",
	"deadlock", "lost-wakeup", "aba",
	"dekker", "peterson", "h3-figure-2", "double-checked", "seqlock", "ring", "chase-lev", "rcu", "ticket-lock", "message",
}

func TestSuiteIsComplete(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			t.Errorf("the program %s is missing", name)
		}
	}
}

func TestFindUnknown(t *testing.T) {
	if _, err := Find("nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("got %v, want an error that names the program", err)
	}
}

const good = `
name: some
kind: bug
about: x
stands_for: x
source: x
keeps: x
leaves_out: x
forms: [fixed, buggy]
output: same
outcomes: [correct, crash]
shows: x
races:
  - object: x
    kind: harmful
    lines: [some.c:3]
    why: x
`

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"kind: bug", "kind: virus", "kernel, stress, tool, bug, benign, memory"},
		{"kind: bug", "sort: bug", "sort"},
		{"name: some", "name: other", "the folder's name"},
		{"about: x\n", "", "about is missing"},
		{"forms: [fixed, buggy]", "forms: [buggy]", "fixed first"},
		{"forms: [fixed, buggy]", "forms: [fixed]", "only with a buggy form"},
		{"shows: x", "", "outcomes"},
		{"some.c:3", "3", "file.c:line"},
		{"output: same", "output: same\nthreads: {least: 3, greatest: 2}", "1 <= least <= greatest"},
		{"kind: bug", "kind: memory", "models"},
		{"kind: bug", "kind: bug\nmodels: [tso]", "models"},
		{"kind: bug", "kind: kernel", "test, small and paper"},
		{"output: same", "output: same\nsynchronization: {tolerance: 0}", "at least 1"},
		{
			"output: same",
			`output: same
synchronization: {tolerance: 1, barriers: "n+k", locks: "0", waits: "0", cases: [{arguments: x, values: {n: 1}}]}`,
			"k is none of n, threads",
		},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		_, err := parse("some/program.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "some/program.yaml:") {
			t.Errorf("%q for %q: got error %v, want one with the file and %q", c.new, c.old, err, c.want)
		}
	}
	if _, err := parse("some/program.yaml", []byte(good)); err != nil {
		t.Errorf("the unchanged text: %v", err)
	}
}

func TestFormulas(t *testing.T) {
	c := Case{Values: map[string]float64{"n": 64}}
	for formula, want := range map[string]float64{
		"2*n + 1":                     129,
		"(n - 4) / threads":           15,
		"min(n, 3) + max(n, 100)":     103,
		"ceil(n/5) + floor(n/5)":      25,
		"log2(n) * sqrt(n)":           48,
		"n/2 + n/threads - 1*threads": 44,
	} {
		if got, err := c.Evaluate(formula, 4); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", formula, got, err, want)
		}
	}
	for _, formula := range []string{"", "k", "n %", "n % 2", "-n", "sin(n)", "log2(n, n)", "n(2)", `"n"`} {
		if got, err := c.Evaluate(formula, 4); err == nil {
			t.Errorf("%s = %v, want an error", formula, got)
		}
	}
}

func TestCommandLine(t *testing.T) {
	p := Program{Threads: Bounds{2, 8}}
	for threads, want := range map[int]string{1: "-p 2 -n x2", 4: "-p 4 -n x4", 16: "-p 8 -n x8"} {
		if got := strings.Join(p.CommandLine("-p {threads}  -n x{threads}", threads), " "); got != want {
			t.Errorf("for %d threads: %q, want %q", threads, got, want)
		}
	}
}

// TestRaceLines compares the lines of program.yaml with the comments
// "// race: object" in the source.
func TestRaceLines(t *testing.T) {
	each(t, Buggy, func(t *testing.T, p Program) {
		marked, err := p.MarkedRaces()
		if err != nil {
			t.Fatal(err)
		}
		named := map[string][]string{}
		for _, r := range p.Races {
			named[r.Object] = r.Lines
		}
		if maps.EqualFunc(marked, named, slices.Equal[[]string]) {
			return
		}
		if !*update {
			t.Fatalf("program.yaml names %v and the source marks %v; run the test with -update", named, marked)
		}
		for _, r := range p.Races {
			if marked[r.Object] == nil {
				t.Errorf("the source marks no race on %s", r.Object)
			}
			delete(named, r.Object)
			rewriteLines(t, p, r.Object, marked[r.Object])
			delete(marked, r.Object)
		}
		if len(marked) > 0 {
			t.Errorf("the source marks %v, which program.yaml does not have", marked)
		}
	})
}

func rewriteLines(t *testing.T, p Program, object string, lines []string) {
	t.Helper()
	file := p.Folder + "/program.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(`(?m)(- object: ` + regexp.QuoteMeta(object) + `\n(?:    .*\n)*?    lines: )\[.*\]`)
	text = place.ReplaceAll(text, []byte("${1}["+strings.Join(lines, ", ")+"]"))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVariants(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Variants(Buggy) {
		if v.Form != Buggy {
			t.Errorf("variant %v has another form", v)
		}
		seen[v.Folder()] = true
	}
	want := []string{
		"O0-dynamic", "O0-dynamic-g", "O0-static", "O0-static-g",
		"O2-dynamic", "O2-dynamic-g", "O2-static", "O2-static-g",
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
}

func TestBuildRefusesMissingForm(t *testing.T) {
	p, err := Find("radix")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Build(Variant{Form: Buggy}); err == nil {
		t.Error("radix has been built in a form that it has not")
	}
}

// TestBuildIsCached builds twice and expects the same file, untouched.
func TestBuildIsCached(t *testing.T) {
	p, err := Find("racey")
	if err != nil {
		t.Fatal(err)
	}
	v := Variant{Form: Fixed, Optimize: 2}
	first := build(t, p, v)
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second := build(t, p, v)
	after, err := os.Stat(second)
	if err != nil {
		t.Fatal(err)
	}
	if first != second || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("built %s at %v and %s at %v", first, before.ModTime(), second, after.ModTime())
	}
}
