package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// enforced compares a run under its hybrid schedule with the same run under none.
// Both have all cores of the host; the time to read the schedule is in it.
func (s *setting) enforced(title string, options, recording []string, command ...string) (result, error) {
	trace, schedule := filepath.Join(s.dir, "schedule.trace"), filepath.Join(s.dir, "schedule")
	defer os.Remove(trace)
	record := slices.Concat([]string{s.heddle, "schedule", "record", "-q", "-o", trace}, options, recording, []string{"--"}, command)
	if _, err := s.run(record...); err != nil {
		return result{}, err
	}
	if _, err := s.run(s.heddle, "schedule", "compute", "-o", schedule, trace); err != nil {
		return result{}, err
	}
	under := slices.Concat(options, []string{"--enforce=" + schedule})
	with, without, err := s.inTurn(
		func() (timing, error) { return s.underHeddle(nil, under, command...) },
		func() (timing, error) { return s.underHeddle(nil, options, command...) })
	if err != nil {
		return result{}, err
	}
	times := with.wall.Seconds() / without.wall.Seconds()
	return result{
		title: fmt.Sprintf("%s under its hybrid schedule (%.0f constraints), in times of the same run without", title,
			with.summary.Schedule.Constraints),
		measured: fmt.Sprintf("%.2f (%.3f s against %.3f s)", times, with.wall.Seconds(), without.wall.Seconds()),
		target:   "at most 1.3",
		met:      times <= 1.3,
	}, nil
}

// enforcedInput is how much of the input pbzip2 gets that is recorded with all its
// loads and stores.
const enforcedInput = 600 << 10

func enforcedPbzip2(s *setting) (result, error) {
	short := filepath.Join(s.dir, "short")
	from, err := os.Open(s.input)
	if err != nil {
		return result{}, err
	}
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, enforcedInput))
	if err != nil {
		return result{}, err
	}
	if err := os.WriteFile(short, text, 0o600); err != nil {
		return result{}, err
	}
	options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
	return s.enforced("pbzip2 -p4", options, nil, append(slices.Clone(compressors["pbzip2 -p4"]), "-b1", "-c", short)...)
}

// enforcedRacey has the number of races and constraints of PEREGRINE's table 2
// (docs/schedules.md); the other one has many times as many constraints.
func enforcedRacey(s *setting) (result, error) { return s.racey("2400", "13500") }

func enforcedRaceyFine(s *setting) (result, error) { return s.racey("200", "10490") }

func (s *setting) racey(quantum, iterations string) (result, error) {
	bin := filepath.Join(s.dir, "racey")
	_, err := s.run("gcc", "-O2", "-D_GNU_SOURCE", "-DBUGGY", "-pthread", "-Iguest/programs/suite/common", "-o", bin,
		"guest/programs/suite/racey/racey.c")
	if err != nil {
		return result{}, err
	}
	return s.enforced(fmt.Sprintf("racey with 168,000 races, recorded with turns of %s instructions,", quantum),
		[]string{"--cores=8"}, []string{"--sched=rr", "--quantum=" + quantum}, bin, "-p", "8", "-i", iterations)
}
