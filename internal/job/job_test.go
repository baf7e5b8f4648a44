package job

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary the worker that Spawn starts.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != WorkerCommand {
		os.Exit(m.Run())
	}
	if err := ServeWorker(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func jobOf(args ...string) Job {
	options := DefaultOptions()
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
		j := jobOf("sh", "-c", "cat; echo error >&2; exit 3")
		j.Stdin, j.StdinIsPipe = stdin, pipe
		var eventsHere, eventsThere bytes.Buffer
		here := j.Run(context.Background(), &eventsHere)
		there, err := j.Spawn(context.Background(), []string{"GOMAXPROCS=1"}, &eventsThere)
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
		"cannot run no-such-program: no such program in the guest's PATH": jobOf("no-such-program"),
		"cannot read /no/such as standard input: no such file":            {Options: DefaultOptions(), Args: []string{"true"}, Stdin: "/no/such"},
	} {
		report, err := j.Spawn(context.Background(), nil, nil)
		if err != nil || report.Result != nil || !strings.HasPrefix(report.Failure, want) {
			t.Errorf("%+v, %v", report, err)
		}
	}
}
