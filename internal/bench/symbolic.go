package main

import "fmt"

// symbolicSpeed is the time of symbolic execution on the stand-ins of PEREGRINE's
// table 4, in ratio to the paper's.
func symbolicSpeed(s *setting) (result, error) {
	figures, err := s.goFigures("./experiments/concolicrun", "BenchmarkTable4")
	mean := figures["times(mean)"]
	return result{
		title: "symbolic execution of the programs of PEREGRINE's table 4, per thousand instructions, machine included",
		measured: fmt.Sprintf("%.0f times as fast as in the table (geometric mean; %.0f of 16 below 50, the least %.1f times): %.2f us an instruction",
			mean, figures["below50"], figures["times(least)"], figures["us/instr"]),
		target: "at least 50 times",
		met:    mean >= 50,
	}, err
}

// symbolicMemory is the memory for a long trace.
func symbolicMemory(s *setting) (result, error) {
	figures, err := s.goFigures("./experiments/concolicrun", "BenchmarkLongTrace")
	long := figures["Minstr"]
	return result{
		title:    fmt.Sprintf("memory for a trace of %.0f million instructions, %.0f %% of which touch symbols", long, figures["%symbolic"]),
		measured: fmt.Sprintf("%.2f GiB", figures["GiB"]),
		target:   "under 8 GB for 60 million",
		met:      long >= 60 && figures["GiB"] < 8e9/(1<<30),
	}, err
}

// preconditionCheck is the time to decide about a new input.
func preconditionCheck(s *setting) (result, error) {
	figures, err := s.goFigures("./experiments/tern", "BenchmarkFind")
	each := figures["us/check"]
	return result{
		title:    "deciding about a new file by the preconditions of Debian's pbzip2, the file opened and closed",
		measured: fmt.Sprintf("%.0f us", each),
		target:   "under 1 ms",
		met:      each > 0 && each < 1000,
	}, err
}

// slicingSpeed and simplificationSpeed are those of the stand-ins of PEREGRINE's table 4,
// in ratio to the paper's.
func slicingSpeed(s *setting) (result, error) {
	return s.sliced("slicing", "slicing to preconditions")
}

func simplificationSpeed(s *setting) (result, error) {
	return s.sliced("simplification", "schedule-guided simplification with alias analysis")
}

func (s *setting) sliced(unit, title string) (result, error) {
	figures, err := s.goFigures("./analyses/slice", "BenchmarkTable4")
	least := figures[unit+"(least)"]
	return result{
		title: title + " of the programs of PEREGRINE's table 4, per thousand instructions",
		measured: fmt.Sprintf("at least %.0f times as fast as in the table (geometric mean %.0f times), %.0f bytes an instruction",
			least, figures[unit+"(mean)"], figures["B/instr"]),
		target: "at least 20 times",
		met:    least >= 20,
	}, err
}
