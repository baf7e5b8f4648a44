package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testhost"
)

// timeLimit ends a run that hangs. It is no measure of speed: the slowest run
// takes a few seconds on an idle host.
const timeLimit = 15 * time.Minute

var (
	// bin is heddle's binary.
	bin string
	// scratch is a folder for everything that is built once.
	scratch string
)

func TestMain(m *testing.M) {
	testhost.DefaultSignals()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "heddle-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if bin, err = findBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// findBinary returns the one of HEDDLE_BIN, or builds one.
func findBinary() (string, error) {
	if named := os.Getenv("HEDDLE_BIN"); named != "" {
		return filepath.Abs(named)
	}
	out := filepath.Join(scratch, "heddle")
	text, err := exec.Command("go", "build", "-o", out, "github.com/heddle-dmt/heddle/cmd/heddle").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build heddle: %w\n%s", err, text)
	}
	return out, nil
}

// outcome is the result of a run, as its parent sees it.
type outcome struct {
	stdout, stderr string
	// status is the exit status, or 128+n after death by signal n.
	status int
	// peak is the largest resident set in bytes.
	peak int64
}

func (o outcome) String() string {
	return fmt.Sprintf("status %d\nstdout:\n%s\nstderr:\n%s", o.status, shorten(o.stdout), shorten(o.stderr))
}

func shorten(s string) string {
	if len(s) > 3000 {
		return s[:1500] + "\n[...]\n" + s[len(s)-1500:]
	}
	return s
}

// slots bounds how many programs run at once.
var slots = make(chan struct{}, runtime.NumCPU())

// execute runs a command in dir with the environment that heddle gives to
// guests and no input.
func execute(t *testing.T, dir string, env []string, command ...string) outcome {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(machine.DefaultEnv(), env...)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%q: no end after %v\nstdout:\n%s\nstderr:\n%s",
			command, timeLimit, shorten(stdout.String()), shorten(stderr.String()))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", command, err)
	}
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.status = 128 + int(ws.Signal())
	}
	o.peak = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	return o
}

// command is the line of `heddle run` for a program under some flags.
func command(flags []string, program ...string) []string {
	line := append([]string{bin, "run"}, flags...)
	return append(append(line, "--"), program...)
}

// run runs a program on heddle. That heddle finds a defect in itself is never
// right.
func run(t *testing.T, dir string, flags []string, program ...string) outcome {
	t.Helper()
	o := execute(t, dir, nil, command(flags, program...)...)
	if strings.Contains(o.stderr, "heddle has a defect") || strings.Contains(o.stderr, "goroutine ") {
		t.Fatalf("heddle %q -- %q: %v", flags, program, o)
	}
	return o
}

// summarize runs a program on heddle and returns its summary as well. extra is
// added to heddle's own environment.
func summarize(t *testing.T, dir string, extra, flags []string, program ...string) (outcome, machine.Result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "summary.json")
	o := execute(t, dir, extra, command(append([]string{"--summary", file}, flags...), program...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("heddle %q -- %q wrote no summary: %v", flags, program, o)
	}
	return o, readSummary(t, file)
}

func readSummary(t *testing.T, file string) machine.Result {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r machine.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// compiled holds the programs that were compiled, by compiler arguments.
var compiled sync.Map

// compile builds testdata/NAME.c and returns the path of the program. Each
// program is built once, into a folder of its own, so that a guest that sees
// its own folder sees nothing else.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	once, _ := compiled.LoadOrStore(name+" "+strings.Join(flags, " "), sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp(scratch, name+"-")
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, name)
		args := append([]string{
			"-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-Wall", "-Wextra",
			"-o", out, filepath.Join("testdata", name+".c"),
		}, flags...)
		if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("gcc %q: %w\n%s", args, err, text)
		}
		return out, nil
	}))
	out, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// writeFile makes a file of a test's folder, and the folders above it.
func writeFile(t *testing.T, name string, content []byte, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, mode); err != nil {
		t.Fatal(err)
	}
	return name
}
