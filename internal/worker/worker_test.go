package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is the worker that Spawn starts with this command. A variable makes it end in
// ways that a worker should not.
const (
	testCommand = "worker"
	endVariable = "HEDDLE_TEST_END"
)

// sum is a request: numbers to add up. Its events are the numbers.
type sum struct {
	Numbers []int
	Events  bool
}

type total struct{ Sum int }

func addUp(s sum) (t total) {
	events := io.Discard
	if s.Events {
		pipe := os.NewFile(EventsDescriptor, "events")
		defer pipe.Close()
		events = pipe
	}
	for _, n := range s.Numbers {
		t.Sum += n
		fmt.Fprintln(events, n)
	}
	return t
}

func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != testCommand {
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
	case "never":
		fmt.Fprintln(os.NewFile(EventsDescriptor, "events"), "begun")
		_ = unix.Pause()
	}
	if err := Serve(os.Stdin, os.Stdout, addUp); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestRequestsAreCarriedOut(t *testing.T) {
	for _, withEvents := range []bool{false, true} {
		var events bytes.Buffer
		var to io.Writer
		want := ""
		if withEvents {
			to, want = &events, "3\n4\n"
		}
		var got total
		if err := Spawn(context.Background(), testCommand, sum{[]int{3, 4}, withEvents}, &got, nil, to); err != nil || got.Sum != 7 {
			t.Errorf("got %v, %v", got, err)
		}
		if events.String() != want {
			t.Errorf("got the events %q, want %q", events.String(), want)
		}
	}
}

func TestWorkersThatEndBadly(t *testing.T) {
	for how, want := range map[string]string{
		"panic":   "the worker process of a run ended with exit status 2: panic: bug: on purpose",
		"silent":  "the worker process of a run ended with exit status 9: it said nothing",
		"garbage": "the worker process of a run ended with an unreadable report: unexpected end of JSON input",
	} {
		err := Spawn(context.Background(), testCommand, sum{}, &total{}, []string{endVariable + "=" + how}, nil)
		if !errors.Is(err, errCrash) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

func TestRequestsOfOtherKindsAreRefused(t *testing.T) {
	if err := Serve(strings.NewReader(`{"Numbers": "three"}`), io.Discard, addUp); !errors.Is(err, errRequest) {
		t.Error(err)
	}
}

func TestCancelledWorkersAreKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := Spawn(ctx, testCommand, sum{}, &total{}, []string{endVariable + "=never"}, cancelAtFirstEvent{cancel})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// cancelAtFirstEvent knows from an event that the worker runs.
type cancelAtFirstEvent struct{ cancel func() }

func (c cancelAtFirstEvent) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}
