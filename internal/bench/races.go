package main

import "fmt"

// raceSpeed is the speed of a race detector over a stored trace, decoding
// included, and how the time for an access grows with the trace.
func raceSpeed(mode string) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		figures, err := s.goFigures("./analyses/races/stream", "BenchmarkTrace/"+mode)
		speed, growth := figures["Maccesses/s"], figures["4n/n"]
		return result{
			title: fmt.Sprintf("races of a stored trace (--mode %s), %.0f million accesses", mode, figures["accesses"]/1e6),
			measured: fmt.Sprintf("%.1f million accesses/s of processor time; the time for each in a trace of four times the length: %.2f times",
				speed, growth),
			target: "at least 15 million a core, linear in length",
			met:    speed >= 15 && growth <= 1.1,
		}, err
	}
}

// raceyRaces is the time to record racey and to find its races, at the size of
// PEREGRINE's table 2.
func raceyRaces(s *setting) (result, error) {
	figures, err := s.goFigures("./guest/programs/suite", "BenchmarkRaceyRaces")
	seconds := figures["s-recording"] + figures["s-finding"]
	return result{
		title:    fmt.Sprintf("racey with %.0f races: record, and find them relative to the recorded order", figures["races(schedule)"]),
		measured: fmt.Sprintf("%.2f s + %.2f s", figures["s-recording"], figures["s-finding"]),
		target:   "under 10 s with the computation of the hybrid schedule",
		met:      seconds > 0 && seconds < 10,
	}, err
}

// raceyHybrid is the time to make racey's hybrid schedule at that size.
func raceyHybrid(s *setting) (result, error) {
	figures, err := s.goFigures("./experiments/peregrine", "BenchmarkRaceyHybrid")
	seconds := figures["s-making"]
	return result{
		title:    fmt.Sprintf("racey with %.0f races: make its hybrid schedule (%.0f constraints) of a stored trace", figures["races"], figures["constraints"]),
		measured: fmt.Sprintf("%.2f s", seconds),
		target:   "under 10 s",
		met:      seconds > 0 && seconds < 10,
	}, err
}
