package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// branchTracing compares a run that records branches with one that does not;
// both have all cores of the host, as the trace is compressed beside the run.
func (s *setting) branchTracing(title string, options []string, command ...string) (result, error) {
	trace := filepath.Join(s.dir, "branches.trace")
	record := slices.Concat([]string{s.heddle, "record", "-q", "-o", trace, "--pt"}, options, []string{"--"}, command)
	with, without, err := s.inTurn(
		func() (timing, error) {
			defer os.Remove(trace)
			return s.run(record...)
		},
		func() (timing, error) { return s.underHeddle(nil, options, command...) })
	share := without.wall.Seconds() / with.wall.Seconds()
	return result{
		title:    title + ", speed with branch tracing in ratio to that without",
		measured: fmt.Sprintf("%.2f (%.2f s against %.2f s)", share, with.wall.Seconds(), without.wall.Seconds()),
		target:   "at least 0.70",
		met:      share >= 0.7,
	}, err
}

func branchTracingLoop(s *setting) (result, error) {
	return s.branchTracing("CPU-bound, one thread", []string{"--cores=1"}, s.guest, "cpu", "30")
}

func branchTracingPbzip2(s *setting) (result, error) {
	options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
	return s.branchTracing("pbzip2 -p4", options, append(slices.Clone(compressors["pbzip2 -p4"]), "-c", s.input)...)
}

// branchDecoder compares the decoder of branch traces with Intel's.
func branchDecoder(s *setting) (result, error) {
	figures, err := s.goFigures("./internal/machine", "BenchmarkBranchTrace")
	mine, theirs := figures["Mbranches/s"], figures["Mbranches/s(libipt)"]
	return result{
		title:    "decoder of branch traces, pbzip2, in branches per second of processor time",
		measured: fmt.Sprintf("%.0f million (libipt: %.0f million)", mine, theirs),
		target:   "at least 50 million",
		met:      mine >= 50,
	}, err
}

// branchSize is the size of a branch trace before compression.
func branchSize(s *setting) (result, error) {
	bits, err := s.goBenchmark("./internal/machine", "BenchmarkBranchTrace", "bits/instruction")
	return result{
		title:    "branch trace of pbzip2 before compression, per instruction",
		measured: fmt.Sprintf("%.2f bits", bits),
		target:   "at most 1.0 bit",
		met:      bits > 0 && bits <= 1,
	}, err
}

// branchSizeStored is its size in the trace's file.
func branchSizeStored(s *setting) (result, error) {
	bits, err := s.goBenchmark("./internal/machine", "BenchmarkBranchTrace", "stored-bits/instruction")
	return result{
		title:    "the same after compression",
		measured: fmt.Sprintf("%.2f bits", bits),
		target:   "at most 0.3 bit",
		met:      bits > 0 && bits <= 0.3,
	}, err
}

// branchEncoder is the encoder's speed on logs that are full of outcomes.
func branchEncoder(s *setting) (result, error) {
	figures, err := s.goFigures("./recorder/pt", "BenchmarkEncode/outcomes")
	speed := figures["Mbranches/s"]
	return result{
		title:    "encoder of branch traces, conditional branches per second",
		measured: fmt.Sprintf("%.0f million", speed),
		target:   "at least 100 million",
		met:      speed >= 100,
	}, err
}
