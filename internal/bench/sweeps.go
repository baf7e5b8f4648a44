package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// sweepFile is an experiment of 100 runs of about a sixth of a second of processor time.
const sweepFile = `name: sharded
programs: [{name: loop, command: [sh, -c, 'i=0; while test $i -lt 24000; do i=$((i+1)); done']}]
grid: {seeds: 1-100}
native: false
`

// wholeSweep and shardedSweep are scripts, whose arguments are heddle and the experiment.
const (
	wholeSweep   = `cd "${2%/*}"; rm -rf results; "$1" experiment run --workers 1 "$2" >log 2>&1`
	shardedSweep = `cd "${2%/*}"; rm -rf results; for i in 1 2 3 4; do "$1" experiment run --workers 1 --shard $i/4 "$2" >log 2>&1 || exit 1; done; "$1" experiment merge "$2" >log 2>&1`
)

// sharding is what four shards and their merge take more than the same sweep as one.
func sharding(s *setting) (result, error) {
	file := filepath.Join(s.dir, "sharded.yaml")
	if err := os.WriteFile(file, []byte(sweepFile), 0o644); err != nil {
		return result{}, err
	}
	sweep := func(name, text string) func() (timing, error) {
		script := filepath.Join(s.dir, name)
		return func() (timing, error) {
			if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
				return timing{}, err
			}
			return s.run("sh", script, s.heddle, file)
		}
	}
	whole, shards, err := s.turns(sweep("whole.sh", wholeSweep), sweep("shards.sh", shardedSweep))
	if err != nil {
		return result{}, err
	}
	one, four := 0.0, 0.0
	for i := range whole {
		one += whole[i].processor.Seconds()
		four += shards[i].processor.Seconds()
	}
	more := 0.0
	if one > 0 {
		more = 100 * (four/one - 1)
	}
	return result{
		title:    "a sweep of 100 runs as four shards with their merge, more than as one",
		measured: fmt.Sprintf("%.1f %% (%.1f s against %.1f s of processor time, means of %d)", more, four/float64(len(whole)), one/float64(len(whole)), len(whole)),
		target:   "under 2 %",
		met:      more < 2,
	}, nil
}

// storedRuns is the time of a benchmark over 100,000 stored runs.
func storedRuns(what, benchmark string, most float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		seconds, err := s.goBenchmark("./experiments/sweep", benchmark, "processor-s/op")
		return result{
			title:    what + " of 100,000 stored runs",
			measured: fmt.Sprintf("%.1f s of processor time", seconds),
			target:   fmt.Sprintf("under %g s", most),
			met:      seconds < most,
		}, err
	}
}
