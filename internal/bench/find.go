package main

import "fmt"

// findSchedules is the number of schedules that `heddle find` executes for each second of processor time, against that
// of whole runs.
func findSchedules(s *setting) (result, error) {
	figures, err := s.goFigures("./experiments/find", "BenchmarkSchedules/snapshot")
	if err != nil {
		return result{}, err
	}
	whole, err := s.goFigures("./experiments/find", "BenchmarkSchedules/whole")
	n := figures["schedules/s"]
	return result{
		title:    "heddle find, schedules of 20,000 instructions for each second and core, in ratio to whole runs",
		measured: fmt.Sprintf("%.0f (%.0f times)", n, n/whole["schedules/s"]),
		target:   "at least 1,000",
		met:      n >= 1000,
	}, err
}

// findDecisions is the time of a decision, with all else of a search.
func findDecisions(s *setting) (result, error) {
	figures, err := s.goFigures("./experiments/find", "BenchmarkDecisions")
	us := figures["ns/decision"] / 1e3
	return result{
		title:    "heddle find, processor time for each decision",
		measured: fmt.Sprintf("%.2f us", us),
		target:   "under 2 us",
		met:      us < 2,
	}, err
}
