package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// memoryTrace is the speed of the loop program with all its loads and stores
// recorded to disk.
func memoryTrace(*setting) (result, error) {
	figures, err := goFigures(".", "BenchmarkMemoryTrace")
	speed := figures["Minstr/s"]
	return result{
		what:     "full memory trace to disk, loop program",
		measured: fmt.Sprintf("%.0f million instructions/s", speed),
		target:   "at least 60 million instructions/s",
		met:      speed >= 60,
	}, err
}

func memoryTraceSize(*setting) (result, error) {
	size, err := goBenchmark("BenchmarkMemoryTrace", "bytes/access")
	return result{
		what:     "memory trace of the loop program on disk, values included",
		measured: fmt.Sprintf("%.1f bytes an access", size),
		target:   "at most 4 bytes",
		met:      size > 0 && size <= 4,
	}, err
}

var guestInstructions = regexp.MustCompile(`guest instrs: *([0-9,]+)`)

// memoryTraceLackey compares it with valgrind's lackey, whose trace goes to disk
// too.
func memoryTraceLackey(s *setting) (result, error) {
	figures, err := goFigures(".", "BenchmarkMemoryTrace")
	if err != nil {
		return result{}, err
	}
	count, err := s.lackey("--basic-counts=yes")
	if err != nil {
		return result{}, err
	}
	found := guestInstructions.FindSubmatch(count.text)
	if found == nil {
		return result{}, fmt.Errorf("lackey tells no number of instructions: %s", count.text)
	}
	instructions, err := strconv.ParseFloat(strings.ReplaceAll(string(found[1]), ",", ""), 64)
	if err != nil {
		return result{}, err
	}
	traced, err := s.lackey("--trace-mem=yes", "--basic-counts=no", "--log-file="+filepath.Join(s.dir, "lackey"))
	theirs := instructions / traced.wall.Seconds() / 1e6
	times := figures["Minstr/s"] / theirs
	return result{
		what:     "full memory trace, speed in times of valgrind --tool=lackey --trace-mem=yes",
		measured: fmt.Sprintf("%.0f (%.1f million instructions/s)", times, theirs),
		target:   "at least 25",
		met:      times >= 25,
	}, err
}

type lackeyRun struct {
	wall time.Duration
	text []byte
}

// lackey runs one round of the loop program under lackey.
func (s *setting) lackey(options ...string) (lackeyRun, error) {
	args := append([]string{"--tool=lackey"}, options...)
	cmd := exec.Command("valgrind", append(args, s.guest, "cpu", "1")...)
	var text bytes.Buffer
	cmd.Stderr = &text
	start := time.Now()
	err := cmd.Run()
	return lackeyRun{time.Since(start), text.Bytes()}, err
}
