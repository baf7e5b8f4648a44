package main

import "fmt"

// branchDecoder compares the decoder of branch traces with Intel's.
func branchDecoder(*setting) (result, error) {
	figures, err := goFigures(".", "BenchmarkBranchTrace")
	mine, theirs := figures["Mbranches/s"], figures["Mbranches/s(libipt)"]
	return result{
		what:     "decoder of branch traces, pbzip2, in branches per second of processor time",
		measured: fmt.Sprintf("%.0f million (libipt: %.0f million)", mine, theirs),
		target:   "at least 50 million",
		met:      mine >= 50,
	}, err
}

// branchSize is the size of a branch trace before compression.
func branchSize(*setting) (result, error) {
	bits, err := goBenchmark("BenchmarkBranchTrace", "bits/instruction")
	return result{
		what:     "branch trace of pbzip2 before compression, per instruction",
		measured: fmt.Sprintf("%.2f bits", bits),
		target:   "at most 1.0 bit",
		met:      bits > 0 && bits <= 1,
	}, err
}

// branchEncoder is the encoder's speed on logs that are full of outcomes.
func branchEncoder(*setting) (result, error) {
	figures, err := goFigures("./recorder/pt", "BenchmarkEncode/outcomes")
	speed := figures["Mbranches/s"]
	return result{
		what:     "encoder of branch traces, conditional branches per second",
		measured: fmt.Sprintf("%.0f million", speed),
		target:   "at least 100 million",
		met:      speed >= 100,
	}, err
}
