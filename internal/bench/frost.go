package main

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
)

// survived is the exit status of `heddle frost run` after a race that the run went
// on in spite of.
const survived = 121

// frostPipeline compares a run under Frost, three replicas, with a plain one, both
// on two cores of the host, of which the plain run uses one.
func frostPipeline(s *setting) (result, error) {
	two := []string{"taskset", "-c", fmt.Sprintf("%d-%d", max(0, runtime.NumCPU()-2), runtime.NumCPU()-1)}
	options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
	command := []string{"pbzip2", "-p4", "-b1", "-1", "-k", "-c", s.input}
	frost, plain, err := s.inTurn(
		func() (timing, error) {
			t, err := s.run(slices.Concat(two, []string{s.heddle, "frost", "run", "-q", "--followers=2"}, options, []string{"--"}, command)...)
			if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == survived {
				err = nil
			}
			return t, err
		},
		func() (timing, error) { return s.underHeddle(two, options, command...) })
	times := frost.wall.Seconds() / plain.wall.Seconds()
	return result{
		title:    "pbzip2 -p4 under Frost, on two host cores, in times of a plain run",
		measured: fmt.Sprintf("%.2f (%.2f s against %.2f s)", times, frost.wall.Seconds(), plain.wall.Seconds()),
		target:   "at most 2.2",
		met:      times <= 2.2,
	}, err
}

// frostSetUp is the time to set up the three replicas of an epoch.
func frostSetUp(s *setting) (result, error) {
	ms, err := s.goBenchmark("./experiments/frost/epoch", "BenchmarkEpochSetUp", "ms")
	return result{
		title:    "set-up of an epoch's three replicas, guest of 200 MiB",
		measured: fmt.Sprintf("%.2f ms", ms),
		target:   "under 5 ms",
		met:      ms > 0 && ms < 5,
	}, err
}
