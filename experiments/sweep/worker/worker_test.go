package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/runoptions"
)

const endVariable = "HEDDLE_TEST_END"

// TestMain makes the test binary the worker that Spawn starts. A variable makes
// it end in ways that a worker should not.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != Command {
		os.Exit(m.Run())
	}
	switch os.Getenv(endVariable) {
	case "panic":
		panic("bug: on purpose")
	case "silent":
		os.Exit(9)
	case "garbage":
		fmt.Println("{")
		os.Exit(0)
	}
	if err := Main(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func job(args ...string) Job {
	options := runoptions.Default()
	options.Dir = "/"
	return Job{Options: options, Args: args}
}

// TestHereAndThereAreEqual: a run in a fresh process is the run in this one,
// event by event.
func TestHereAndThereAreEqual(t *testing.T) {
	stdin := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(stdin, []byte("b\na\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, pipe := range []bool{false, true} {
		j := job("sh", "-c", "cat; echo error >&2; exit 3")
		j.Stdin, j.StdinIsPipe = stdin, pipe
		var eventsHere, eventsThere bytes.Buffer
		here := Run(context.Background(), j, &eventsHere)
		j.Events = true
		there, err := Spawn(context.Background(), j, []string{"GOMAXPROCS=1"}, &eventsThere)
		if err != nil || here.Result == nil || there.Result == nil {
			t.Fatalf("here %+v, there %+v, %v", here, there, err)
		}
		if here.Result.Digest != there.Result.Digest || here.Stdout != there.Stdout || here.Stderr != there.Stderr {
			t.Errorf("here %+v, there %+v", here.Result, there.Result)
		}
		if here.Result.ExitCode != 3 || here.Stdout.Bytes != 4 || here.Stderr.Bytes != 6 {
			t.Errorf("%+v", here)
		}
		if eventsHere.Len() == 0 || !bytes.Equal(eventsHere.Bytes(), eventsThere.Bytes()) {
			t.Errorf("%d bytes of events here, %d there", eventsHere.Len(), eventsThere.Len())
		}
	}
}

func TestFailuresAreReported(t *testing.T) {
	for want, j := range map[string]Job{
		"cannot run no-such-program: no such program in the guest's PATH": job("no-such-program"),
		"cannot read /no/such as standard input: no such file":            {Options: runoptions.Default(), Args: []string{"true"}, Stdin: "/no/such"},
	} {
		report, err := Spawn(context.Background(), j, nil, nil)
		if err != nil || report.Result != nil || !strings.HasPrefix(report.Failure, want) {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

func TestWorkersThatEndBadly(t *testing.T) {
	for how, want := range map[string]string{
		"panic":   "the worker process of a run ended with exit status 2: panic: bug: on purpose",
		"silent":  "the worker process of a run ended with exit status 9: it said nothing",
		"garbage": "the worker process of a run ended with an unreadable report: unexpected end of JSON input",
	} {
		_, err := Spawn(context.Background(), job("true"), []string{endVariable + "=" + how}, nil)
		if !errors.Is(err, errCrash) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

func TestCancelledWorkersAreKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	j := job("sh", "-c", "while :; do echo; done")
	j.Events = true
	_, err := Spawn(ctx, j, nil, cancelAtFirstEvent{cancel})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// cancelAtFirstEvent knows from an event that the program runs.
type cancelAtFirstEvent struct{ cancel func() }

func (c cancelAtFirstEvent) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}
