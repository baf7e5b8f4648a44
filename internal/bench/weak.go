package main

import (
	"fmt"
	"slices"
)

// litmusTest is the time of an exhaustive exploration, against a limit in
// milliseconds, and executions per second.
func litmusTest(name string, limit float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		figures, err := s.goFigures("./memmodel/explore", "Benchmark"+name)
		ms := figures["ns/op"] / 1e6
		return result{
			title:    "litmus test " + name + " under TSO, every execution",
			measured: fmt.Sprintf("%.2f ms (%.0f executions/s)", ms, figures["executions/s"]),
			target:   fmt.Sprintf("under %.0f ms", limit),
			met:      ms < limit,
		}, err
	}
}

// litmusSuite is the time for all generated tests, by machine and by axioms.
func litmusSuite(s *setting) (result, error) {
	figures, err := s.goFigures("./memmodel", "BenchmarkGenerated")
	seconds := figures["ns/op"] / 1e9
	return result{
		title:    fmt.Sprintf("%.0f litmus tests under three models, by machine and by axioms", figures["tests"]),
		measured: fmt.Sprintf("%.1f s", seconds),
		target:   "400 tests in 120 s",
		met:      seconds < 120 && figures["tests"] >= 400,
	}, err
}

// tso compares an engine of TSO with SC on the same command.
func (s *setting) tso(engine, title string, target float64, options []string, command ...string) (result, error) {
	weak, sc, err := s.inTurn(
		func() (timing, error) {
			return s.underHeddle(oneCore, append(slices.Clone(options), "--model=tso", "--tso-engine="+engine), command...)
		},
		func() (timing, error) { return s.underHeddle(oneCore, options, command...) })
	share := sc.wall.Seconds() / weak.wall.Seconds()
	return result{
		title:    fmt.Sprintf("%s under TSO (%s), speed in ratio to SC", title, engine),
		measured: fmt.Sprintf("%.3f (%.2f s against %.2f s)", share, weak.wall.Seconds(), sc.wall.Seconds()),
		target:   fmt.Sprintf("at least %.2f", target),
		met:      share >= target,
	}, err
}

// tsoLoop is the loop program under an engine.
func tsoLoop(engine string, target float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		return s.tso(engine, "CPU-bound, one thread", target, []string{"--cores=1"}, s.guest, "cpu", "10")
	}
}

// tsoPbzip2 is pbzip2 under an engine.
func tsoPbzip2(engine string, target float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
		return s.tso(engine, "pbzip2 -p4", target, options, append(slices.Clone(compressors["pbzip2 -p4"]), "-c", s.input)...)
	}
}
