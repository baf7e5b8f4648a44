package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/testhost"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// timeLimit ends a program that hangs. It is no measure of speed: a normal native run
// takes a few milliseconds on an idle host.
const timeLimit = 15 * time.Minute

// slots bounds how many programs run at once in one test process.
var slots = make(chan struct{}, runtime.NumCPU())

// outcome is the part of a run's result that must be the same natively and under heddle.
type outcome struct {
	stdout string
	// status is the exit status, or 128+n after a death by signal n.
	status int
	stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("status %d\nstdout:\n%s\nstderr:\n%s", o.status, o.stdout, o.stderr)
}

func TestMain(m *testing.M) {
	testhost.DefaultSignals()
	os.Exit(m.Run())
}

// run starts a command in dir with a fixed environment and no input.
func run(t *testing.T, dir, name string, args ...string) outcome {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/", "LC_ALL=C"}
	// A program's children may outlive it and keep its output open.
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", name, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s: no end after %v\nstdout:\n%s\nstderr:\n%s", name, timeLimit, &stdout, &stderr)
	}
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.status = 128 + int(ws.Signal())
	}
	return o
}

// folder makes the fresh working directory of one run.
func folder(t *testing.T, p Program) string {
	t.Helper()
	dir := t.TempDir()
	if p.Plugin {
		lib, err := p.BuildPlugin()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "plugin.so"), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expected is the status that the comment in the source declares.
func (p Program) expected() int {
	if p.Signal != 0 {
		return 128 + int(p.Signal)
	}
	return p.Exit
}

// forms calls f for a form of every program, the dynamic or the static one in rotation, with numbers
// that count them. In the small test size it is that of every fourth program, in the large one both.
func forms(t *testing.T, f func(t *testing.T, turn int, p Program, bin string)) {
	for i, p := range Programs() {
		if i%testsize.Pick(4, 1, 1) != 0 {
			continue
		}
		both := []bool{false, true}
		if p.DynamicOnly != "" {
			both = both[:1]
		}
		for _, static := range testsize.Sample(both, 1, i/testsize.Pick(4, 1, 1)) {
			name, turn := p.Name+"/dynamic", 2*i
			if static {
				name, turn = p.Name+"/static", 2*i+1
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if problem := engines.Check(engines.Auto, p.CPU); problem != nil {
					t.Skipf("%s: %s", problem.Found, problem.Allowed)
				}
				bin, err := p.Build(static)
				if err != nil {
					t.Fatal(err)
				}
				f(t, turn, p, bin)
			})
		}
	}
}

// notNative is the reason for which a program is not run on the host, or is empty.
func (p Program) notNative(t *testing.T) string {
	t.Helper()
	if p.Root && os.Geteuid() != 0 {
		return "it needs root's rights"
	}
	if p.Breakpoints {
		switch has, err := testhost.HasBreakpoints(); {
		case err != nil:
			t.Fatal(err)
		case !has:
			return testhost.NoBreakpoints
		}
	}
	return p.EngineOnly
}

// TestNative runs every program on the host's kernel, which must agree with
// the comment at the top of its source.
func TestNative(t *testing.T) {
	forms(t, func(t *testing.T, _ int, p Program, bin string) {
		if why := p.notNative(t); why != "" {
			t.Skip(why)
		}
		o := run(t, folder(t, p), bin)
		if o.status != p.expected() {
			t.Fatalf("want status %d, got %v", p.expected(), o)
		}
		if p.expected() == 0 && o.stderr != "" {
			t.Fatalf("unexpected standard error: %v", o)
		}
		if o.stdout == "" {
			t.Fatal("no output")
		}
		if p.Breakpoints && o.stdout != p.Recorded() {
			t.Fatalf("src/%s.out is not what the program prints:\n%s", p.Name, o.stdout)
		}
	})
}

func TestPrograms(t *testing.T) {
	all := Programs()
	if len(all) < 130 {
		t.Errorf("%d programs, want at least 130", len(all))
	}
	for _, p := range all {
		if !strings.HasSuffix(p.About, ".") {
			t.Errorf("%s: the first line is no sentence: %q", p.Name, p.About)
		}
	}
}

func TestParse(t *testing.T) {
	p, err := parse("x", "// About it.\n// link: -lm -ldl\n// static: no (dlopen)\n// plugin: yes\n// exit: 3\n// signal: SIGABRT\n// cpu: x86-64-v3\n// breakpoints: yes\n#include <a.h>\n// not: read\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Program{
		Name: "x", About: "About it.", Link: []string{"-lm", "-ldl"}, DynamicOnly: "dlopen",
		Plugin: true, Exit: 3, Signal: unix.SIGABRT, CPU: arch.V3, Breakpoints: true,
	}
	if fmt.Sprint(p) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "x.c:1: the first line must say what the program exercises"},
		{"// A.\n// more words\n", `x.c:2: "more words" is not "key: value"`},
		{"// A.\n// colour: red\n", `x.c:2: unknown key "colour", want link, static, engine, native, root, cpu, breakpoints, plugin, exit or signal`},
		{"// A.\n// exit: 256\n", `x.c:2: exit: got "256", want 0 to 255`},
		{"// A.\n// exit: none\n", `x.c:2: exit: got "none", want 0 to 255`},
		{"// A.\n// signal: 6\n", `x.c:2: signal: got "6", want a name such as SIGABRT`},
		{"// A.\n// static: no\n", `x.c:2: static: got "no", want "no (reason)"`},
		{"// A.\n// native: no\n", `x.c:2: native: got "no", want "no (reason)"`},
		{"// A.\n// root: no\n", `x.c:2: root: got "no", want "yes"`},
		{"// A.\n// cpu: x86-64-v9\n", `x.c:2: cpu: got "x86-64-v9", want one of x86-64-v2, x86-64-v3`},
		{"// A.\n// breakpoints: no\n", `x.c:2: breakpoints: got "no", want "yes"`},
		{"// A.\n// plugin: no\n", `x.c:2: plugin: got "no", want "yes"`},
	} {
		if _, err := parse("x", c.text); err == nil || err.Error() != c.want {
			t.Errorf("parse(%q): %v, want %s", c.text, err, c.want)
		}
	}
}

// TestBuildIsCached checks that a second build is the first one's file and
// that another form is another file.
func TestBuildIsCached(t *testing.T) {
	p := Programs()[0]
	first, err := p.Build(false)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Build(false)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(second)
	if err != nil {
		t.Fatal(err)
	}
	if first != second || !os.SameFile(before, after) {
		t.Errorf("built again: %s, then %s", first, second)
	}
	static, err := p.Build(true)
	if err != nil {
		t.Fatal(err)
	}
	if static == first {
		t.Errorf("static and dynamic builds are the same file %s", static)
	}
}

func TestBuildErrors(t *testing.T) {
	if _, err := (Program{Name: "x", DynamicOnly: "dlopen"}).Build(true); err == nil || err.Error() != "build x: no static form: dlopen" {
		t.Errorf("static build of a dynamic program: %v", err)
	}
	if _, err := (Program{Name: "x"}).BuildPlugin(); err == nil || err.Error() != "build x: it has no plugin" {
		t.Errorf("plugin of a program without one: %v", err)
	}
	if _, err := (Program{Name: "no-such-program"}).Build(false); err == nil {
		t.Error("a program without a source was built")
	}
}
