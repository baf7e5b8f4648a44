package suite

import (
	"encoding/json"
	"os"
	"sync"
	"testing"
)

// measured is the content of measured.json: numbers for docs/programs.md and related pages that take
// too long to measure again in each test.
type measured struct {
	// Bugs are, by program, the frequencies under each schedule of sweeps.
	Bugs map[string][]shown `json:"bugs"`
	// Synchronization holds, by program, counts for the last case.
	Synchronization map[string][]syncCounts `json:"synchronization"`
	// Sizes are, by program, native times.
	Sizes map[string]sizes `json:"sizes"`
}

// shown is how often a bug showed under a schedule.
type shown struct {
	Schedule string          `json:"schedule"`
	Seeds    int             `json:"seeds"`
	First    uint64          `json:"first_seed,omitempty"`
	Outcomes map[Outcome]int `json:"outcomes"`
}

func (s shown) total() int {
	n := 0
	for _, count := range s.Outcomes {
		n += count
	}
	return n
}

// syncCounts compares a thread's operations, on average, at a number of threads.
type syncCounts struct {
	Threads int    `json:"threads"`
	Formula counts `json:"formula"`
	Native  counts `json:"native"`
	Heddle  counts `json:"heddle"`
}

// sizes are milliseconds of processor time: the least of several runs with four
// threads.
type sizes struct {
	Test  float64 `json:"test_ms"`
	Small float64 `json:"small_ms"`
}

const measuredFile = "measured.json"

func loadMeasured(t testing.TB) measured {
	t.Helper()
	m := measured{Bugs: map[string][]shown{}, Synchronization: map[string][]syncCounts{}, Sizes: map[string]sizes{}}
	text, err := os.ReadFile(measuredFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// changing is held while the file is changed.
var changing sync.Mutex

// updated changes the numbers in the file.
func updated(t testing.TB, change func(m *measured)) {
	t.Helper()
	changing.Lock()
	defer changing.Unlock()
	m := loadMeasured(t)
	change(&m)
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(measuredFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
