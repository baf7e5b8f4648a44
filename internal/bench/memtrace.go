package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// memoryTrace is the speed of the loop program with all its loads and stores
// recorded to disk.
func memoryTrace(s *setting) (result, error) {
	figures, err := s.goFigures("./internal/machine", "BenchmarkMemoryTrace")
	speed := figures["Minstr/s"]
	return result{
		title:    "full memory trace to disk, loop program",
		measured: fmt.Sprintf("%.0f million instructions/s", speed),
		target:   "at least 60 million instructions/s",
		met:      speed >= 60,
	}, err
}

func memoryTraceSize(s *setting) (result, error) {
	size, err := s.goBenchmark("./internal/machine", "BenchmarkMemoryTrace", "bytes/access")
	return result{
		title:    "memory trace of the loop program on disk, values included",
		measured: fmt.Sprintf("%.1f bytes an access", size),
		target:   "at most 4 bytes",
		met:      size > 0 && size <= 4,
	}, err
}

var guestInstructions = regexp.MustCompile(`guest instrs: *([0-9,]+)`)

// memoryTraceLackey compares it with valgrind's lackey, whose trace goes to disk
// too.
func memoryTraceLackey(s *setting) (result, error) {
	figures, err := s.goFigures("./internal/machine", "BenchmarkMemoryTrace")
	if err != nil {
		return result{}, err
	}
	count, _, err := s.lackey("--basic-counts=yes")
	if err != nil {
		return result{}, err
	}
	found := guestInstructions.FindSubmatch(count)
	if found == nil {
		return result{}, fmt.Errorf("lackey prints no number of instructions: %s", count)
	}
	instructions, err := strconv.ParseFloat(strings.ReplaceAll(string(found[1]), ",", ""), 64)
	if err != nil {
		return result{}, err
	}
	_, traced, err := s.lackey("--trace-mem=yes", "--basic-counts=no")
	theirs := instructions / traced.wall.Seconds() / 1e6
	times := figures["Minstr/s"] / theirs
	return result{
		title:    "full memory trace, speed in times of valgrind --tool=lackey --trace-mem=yes",
		measured: fmt.Sprintf("%.0f (%.1f million instructions/s)", times, theirs),
		target:   "at least 25",
		met:      times >= 25,
	}, err
}

// lackey runs one round of the loop program under lackey and returns its log.
func (s *setting) lackey(options ...string) ([]byte, timing, error) {
	log := filepath.Join(s.dir, "lackey")
	line := slices.Concat([]string{"valgrind", "--tool=lackey", "--log-file=" + log}, options, []string{s.guest, "cpu", "1"})
	t, err := s.run(line...)
	if err != nil {
		return nil, t, err
	}
	text, err := os.ReadFile(log)
	return text, t, err
}
