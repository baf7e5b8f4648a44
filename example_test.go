package heddle_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/heddle-dmt/heddle"
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
	fmt.Println(r.Outcome, r.ExitCode, r.Instructions > 0)
	// Output:
	// hello from the guest
	// exit 0 true
}

// A machine can be stepped by hand, and go back to where it was.
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
	file, err := os.CreateTemp("", "trace")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c := heddle.DefaultConfig()
	c.Args = []string{"echo", "once"}
	c.Record = &heddle.Record{To: file, Inputs: true}
	recorded, err := heddle.Run(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	replay, err := heddle.OpenReplay(file.Name())
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
