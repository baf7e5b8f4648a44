package main

import (
	"fmt"
	"slices"
	"strings"
)

// reproduced is heddle's own time for a schedule of a failure of H3's table 4.
func reproduced(paper string, most float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		figures, err := s.goFigures("./experiments/h3", "BenchmarkReproduce/"+paper)
		seconds, ok := figures["s"]
		return result{
			title:    paper + ", a schedule for the failure by heddle's encoding",
			measured: fmt.Sprintf("%.2f s", seconds),
			target:   fmt.Sprintf("under %.0f s", most),
			met:      ok && seconds < most,
		}, err
	}
}

// solvedByZ3 is Z3's time for H3's encoding.
func solvedByZ3(paper string, most float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		figures, err := s.goFigures("./experiments/h3", "BenchmarkZ3/"+paper+"/h3")
		seconds, ok := figures["s"]
		return result{
			title:    paper + ", Z3 on H3's encoding",
			measured: fmt.Sprintf("%.2f s", seconds),
			target:   fmt.Sprintf("at most %.0f s, H3's table 4", most),
			met:      ok && seconds <= most,
		}, err
	}
}

// symbolicTraces is the time of making symbolic traces in ratio to H3's table 2.
func symbolicTraces(s *setting) (result, error) {
	figures, measured, err := s.ofEach("times", "%.0f")
	return result{
		title:    "symbolic traces, times as fast as in H3's table 2",
		measured: measured,
		target:   "at least 100 each",
		met:      err == nil && slices.Min(figures) >= 100,
	}, err
}

// branchesReproduced is the size of the branch traces that they are made from.
func branchesReproduced(s *setting) (result, error) {
	figures, measured, err := s.ofEach("bits/instruction", "%.2f")
	return result{
		title:    "their branch traces before compression, bits per instruction",
		measured: measured,
		target:   "at most 1 each",
		met:      err == nil && slices.Min(figures) > 0 && slices.Max(figures) <= 1,
	}, err
}

// ofEach is a figure of each program that is in H3's tables 2 and 4.
func (s *setting) ofEach(unit, format string) (list []float64, measured string, err error) {
	var parts []string
	for _, paper := range []string{"bbuf", "sbuf", "pfscan", "pbzip2", "racey1"} {
		figures, err := s.goFigures("./experiments/h3", "BenchmarkReproduce/"+paper)
		if err != nil {
			return nil, "", err
		}
		list = append(list, figures[unit])
		parts = append(parts, fmt.Sprintf("%s "+format, paper, figures[unit]))
	}
	return list, strings.Join(parts, ", "), nil
}
