package main

import "fmt"

// exploreExecutions is the number of executions that `heddle explore` carries out for each second of processor time.
func exploreExecutions(s *setting) (result, error) {
	own, err := s.goFigures("./experiments/explore", "BenchmarkExecutions/own")
	if err != nil {
		return result{}, err
	}
	libc, err := s.goFigures("./experiments/explore", "BenchmarkExecutions/libc")
	a, b := own["executions/s"], libc["executions/s"]
	return result{
		title:    "heddle explore, executions for each second and core: two threads without a C library; with it",
		measured: fmt.Sprintf("%.0f; %.0f", a, b),
		target:   "at least 2,000 each",
		met:      a >= 2000 && b >= 2000,
	}, err
}
