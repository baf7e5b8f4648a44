package heddle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/sched"
)

// A program is run on a machine of two cores, and its result read.
func ExampleRun() {
	c := heddle.DefaultConfig()
	c.Args = []string{"echo", "hello from the guest"}
	c.Cores = 2
	c.Stdout = os.Stdout
	r, err := heddle.Run(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Outcome == heddle.Exited, r.ExitCode, r.Instructions > 0)
	// Output:
	// hello from the guest
	// true 0 true
}

// An outcome says how a run ended: a reader of a pipe that no one writes to waits forever.
func ExampleOutcome() {
	c := heddle.DefaultConfig()
	c.Args = []string{"sh", "-c", "mkfifo /tmp/pipe; cat /tmp/pipe"}
	r, err := heddle.Run(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Outcome, r.ExitCode)
	c.Args = []string{"sh", "-c", "kill -SEGV $$"}
	if r, err = heddle.Run(context.Background(), c); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Outcome, r.Signal)
	// Output:
	// deadlock 124
	// signal 11
}

// A machine can be stepped by hand, and return to an earlier state.
func ExampleMachine_Snapshot() {
	c := heddle.DefaultConfig()
	c.Args = []string{"sh", "-c", "echo one; echo two"}
	c.Stdout = os.Stdout
	m, err := heddle.New(c)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	start := m.Snapshot()
	defer start.Release()
	first, err := m.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	digest := first.Digest
	m.Restore(start)
	second, err := m.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(digest == second.Digest)
	// Output:
	// one
	// two
	// one
	// two
	// true
}

// Another seed is another run of the same program.
func ExampleConfig_seed() {
	schedules := map[string]bool{}
	for seed := range uint64(3) {
		c := heddle.DefaultConfig()
		c.Args = []string{"sh", "-c", "for i in 1 2 3 4 5 6; do true & done; wait"}
		c.Seed = seed
		r, err := heddle.Run(context.Background(), c)
		if err != nil {
			log.Fatal(err)
		}
		schedules[r.ScheduleDigest] = true
	}
	fmt.Println(len(schedules))
	// Output: 3
}

// A run is recorded, and repeated from the trace.
func ExampleOpenReplay() {
	dir, remove := temporaryFolder()
	defer remove()
	c := heddle.DefaultConfig()
	c.Args = []string{"echo", "once"}
	trace := filepath.Join(dir, "trace")
	recorded := record(c, trace, heddle.Record{Inputs: true})
	replay, err := heddle.OpenReplay(trace)
	if err != nil {
		log.Fatal(err)
	}
	defer replay.Close()
	again, err := replay.Config()
	if err != nil {
		log.Fatal(err)
	}
	again.Stdout = os.Stdout
	repeated, err := heddle.Run(context.Background(), again)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(repeated.Digest == recorded.Digest)
	// Output:
	// once
	// true
}

// overdraft is a program of two tellers that pay out of one account: each looks at the balance and
// pays in two critical sections, so that sometimes the account is overdrawn.
const overdraft = `
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static void *teller(void *arg) {
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&lock);
		int seen = balance;
		pthread_mutex_unlock(&lock);
		if (seen < 10) break;
		pthread_mutex_lock(&lock);
		balance -= 10;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}
int main(void) {
	pthread_t t[2];
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, teller, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	if (balance < 0) abort();
	return 0;
}`

// A hunt: seeds are tried until the program fails, and the failure happens again with that seed.
func Example_hunt() {
	dir, remove := temporaryFolder()
	defer remove()
	c := smallQuanta(compile(dir, overdraft))
	var failure heddle.Failure
	for failed := false; !failed; c.Seed++ {
		r, err := heddle.Run(context.Background(), c)
		if err != nil {
			log.Fatal(err)
		}
		failure, failed = r.Failure(nil)
	}
	c.Seed--
	r, err := heddle.Run(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	again, _ := r.Failure(nil)
	fmt.Println(failure, r.Outcome == heddle.Killed, again == failure)
	// Output: assertion true true
}

// smallQuanta runs a program so that its threads alternate after a few instructions.
func smallQuanta(program string) heddle.Config {
	c := heddle.DefaultConfig()
	c.Args = []string{program}
	c.Dir = filepath.Dir(program)
	c.Sched = sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 20}
	return c
}

// record runs a configuration, discards the output and records the run in a file.
func record(c heddle.Config, path string, what heddle.Record) *heddle.Result {
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	what.To = file
	c.Record, c.Stdout, c.Stderr = &what, io.Discard, io.Discard
	r, err := heddle.Run(context.Background(), c)
	if err = errors.Join(err, file.Close()); err != nil {
		log.Fatal(err)
	}
	return r
}

// temporaryFolder returns a new folder, and a function that removes it.
func temporaryFolder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "heddle-example-")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// compile compiles a C program, given as text, in a folder and returns the path of the executable.
func compile(dir, source string, flags ...string) string {
	program := filepath.Join(dir, "program")
	args := append([]string{"-O1", "-g", "-pthread", "-static", "-o", program, "-xc", "-"}, flags...)
	gcc := exec.Command("gcc", args...)
	gcc.Stdin = strings.NewReader(source)
	if out, err := gcc.CombinedOutput(); err != nil {
		log.Fatalf("%v\n%s", err, out)
	}
	return program
}
