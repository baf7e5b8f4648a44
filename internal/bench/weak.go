package main

import (
	"fmt"
	"slices"
)

// litmusTest is the time of an exhaustive exploration, against a limit in
// milliseconds, and executions per second.
func litmusTest(name string, limit float64) func(*setting) (result, error) {
	return func(*setting) (result, error) {
		figures, err := goFigures("./memmodel/explore", "Benchmark"+name)
		ms := figures["ns/op"] / 1e6
		return result{
			what:     "litmus test " + name + " under TSO, every execution",
			measured: fmt.Sprintf("%.2f ms (%.0f executions/s)", ms, figures["executions/s"]),
			target:   fmt.Sprintf("under %.0f ms", limit),
			met:      ms < limit,
		}, err
	}
}

// litmusSuite is the time for all generated tests, by machine and by axioms.
func litmusSuite(*setting) (result, error) {
	figures, err := goFigures("./memmodel", "BenchmarkGenerated")
	seconds := figures["ns/op"] / 1e9
	return result{
		what:     fmt.Sprintf("%.0f litmus tests under three models, by machine and by axioms", figures["tests"]),
		measured: fmt.Sprintf("%.1f s", seconds),
		target:   "400 tests in 120 s",
		met:      seconds < 120 && figures["tests"] >= 400,
	}, err
}

// exactTSO compares the exact store buffers with SC on the same command.
func (s *setting) exactTSO(what string, target float64, options []string, command ...string) (result, error) {
	weak, sc, err := s.inTurn(
		func() (timing, error) {
			return s.underHeddle(oneCore, append(slices.Clone(options), "--model=tso"), command...)
		},
		func() (timing, error) { return s.underHeddle(oneCore, options, command...) })
	share := sc.wall.Seconds() / weak.wall.Seconds()
	return result{
		what:     what + " under TSO, speed in ratio to SC",
		measured: fmt.Sprintf("%.3f (%.2f s against %.2f s)", share, weak.wall.Seconds(), sc.wall.Seconds()),
		target:   fmt.Sprintf("at least %.2f", target),
		met:      share >= target,
	}, err
}

func exactTSOLoop(s *setting) (result, error) {
	return s.exactTSO("CPU-bound, one thread", 0.25, []string{"--cores=1"}, s.guest, "cpu", "10")
}

func exactTSOPbzip2(s *setting) (result, error) {
	options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
	return s.exactTSO("pbzip2 -p4", 0.12, options, append(slices.Clone(compressors["pbzip2 -p4"]), "-c", s.input)...)
}
