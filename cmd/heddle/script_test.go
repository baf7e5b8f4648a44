package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/experiments/plots/draw"
	"github.com/heddle-dmt/heddle/internal/testhost"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "heddle" { // which the scripts start, and which keeps ignored signals ignored
		testhost.DefaultSignals()
	}
	testscript.Main(m, map[string]func(){"heddle": main, "heddle-plot": plotMain})
}

// plotMain stands for the program heddle-plot, without the library that writes Parquet.
func plotMain() {
	if err := draw.Serve(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			repository, err := filepath.Abs("../..")
			env.Setenv("REPOSITORY", repository)
			// The scripts run on the engine of the other tests, which is ENGINE in them.
			env.Setenv("HEDDLE_ENGINE", os.Getenv("HEDDLE_ENGINE"))
			env.Setenv("ENGINE", engines.Resolve(os.Getenv("HEDDLE_ENGINE"), arch.V2))
			return err
		},
		Condition: func(name string) (bool, error) {
			level, known := arch.ParseLevel(name)
			if !known {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return engines.Check(engines.Auto, level) == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    statusCommand,
			"interrupt": interruptCommand,
		},
	})
}

// statusCommand runs a command and demands an exit status:
// status N COMMAND...
func statusCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("status %d, want %s", got, args[0])
	}
}

// hangs is for how long a command is awaited that should end soon. It is no measure of
// speed.
const hangs = 15 * time.Minute

// interruptCommand starts a command whose standard input stays open, waits
// until its stdout or stderr has a word, sends a signal, and demands an exit
// status (-1: death by the signal): interrupt SIGNAL STATUS STREAM WORD COMMAND...
func interruptCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: interrupt signal status stream word command...")
	}
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	path, err := exec.LookPath(args[4])
	ts.Check(err)
	cmd := exec.Command(path, args[5:]...)
	cmd.Args[0] = args[4]
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), environ(ts)
	seen := make(chan struct{})
	stdout, stderr := &watcher{}, &watcher{}
	map[string]*watcher{"stdout": stdout, "stderr": stderr}[args[2]].until(args[3], seen)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(stdout, ts.Stdout()), io.MultiWriter(stderr, ts.Stderr())
	stdin, err := cmd.StdinPipe()
	ts.Check(err)
	defer stdin.Close()
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-seen:
		ts.Check(cmd.Process.Signal(signals[args[0]]))
		select {
		case err = <-ended:
		case <-time.After(hangs):
			_ = cmd.Process.Kill()
			ts.Fatalf("it goes on after SIG%s", args[0])
		}
	case err = <-ended:
		ts.Fatalf("it ended before its output had %q: %v", args[3], err)
	case <-time.After(hangs):
		_ = cmd.Process.Kill()
		ts.Fatalf("it hangs, and its output does not have %q", args[3])
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("status %s, want %s (%v)", got, args[1], err)
	}
}

// environ is the script's environment.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "TESTSCRIPT_COMMAND", "HEDDLE_ENGINE"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// watcher closes a channel when a word has been written to it.
type watcher struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	seen chan struct{}
}

func (w *watcher) until(word string, seen chan struct{}) { w.word, w.seen = word, seen }

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if w.seen != nil && strings.Contains(w.text.String(), w.word) {
		close(w.seen)
		w.seen = nil
	}
	return len(p), nil
}

// content is the text so far.
func (w *watcher) content() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestSamplesLoad checks every experiment file that the project ships. Where
// `make programs` has not run, the programs under study are missing, and so are servers that are not installed.
func TestSamplesLoad(t *testing.T) {
	entries, err := os.ReadDir("../../configs")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue // of paper-scripts
		}
		var out, problems bytes.Buffer
		status := Main([]string{"experiment", "validate", "../../configs/" + entry.Name()}, nil, &out, &problems)
		missing := strings.Contains(problems.String(), "/bin/programs/") || strings.Contains(problems.String(), "a server whose programs the host has")
		if status != 0 && !missing {
			t.Errorf("%s: %s", entry.Name(), problems.String())
		}
	}
}
