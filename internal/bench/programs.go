package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The lines of this file are about Debian's programs and default builds of small ones, in processor time of whole
// commands.

// racesOfPbzip2 compares the race detector with the faster one of Valgrind's two.
func racesOfPbzip2(s *setting) (result, error) {
	input, err := s.beginning(2 << 20)
	if err != nil {
		return result{}, err
	}
	program := []string{"/usr/bin/pbzip2", "-p4", "-k", "-c", input}
	valgrind := func(tool string) func() (timing, error) {
		return func() (timing, error) {
			return s.run(slices.Concat([]string{"valgrind", "-q", "--log-file=" + filepath.Join(s.dir, tool+".log"), "--tool=" + tool}, program)...)
		}
	}
	var ours, helgrind, drd []timing
	for range s.repeat {
		for _, side := range []struct {
			run  func() (timing, error)
			into *[]timing
		}{
			{func() (timing, error) {
				return s.run(s.onDirect([]string{"races", "-o", filepath.Join(s.dir, "races")}, program...)...)
			}, &ours},
			{valgrind("helgrind"), &helgrind},
			{valgrind("drd"), &drd},
		} {
			t, err := side.run()
			if err != nil {
				return result{}, err
			}
			*side.into = append(*side.into, t)
		}
	}
	a, b, c := leastProcessor(ours).Seconds(), leastProcessor(helgrind).Seconds(), leastProcessor(drd).Seconds()
	times := a / min(b, c)
	return result{
		title:    "races of pbzip2 -p4 on 2 MB, in times of the faster of helgrind and drd",
		measured: fmt.Sprintf("%.2f (%.2f s; helgrind %.2f s, drd %.2f s of processor time)", times, a, b, c),
		target:   "at most 1.0",
		met:      times <= 1,
	}, nil
}

// beginning is a file with the first bytes of the input.
func (s *setting) beginning(size int) (string, error) {
	text, err := os.ReadFile(s.input)
	if err != nil {
		return "", err
	}
	name := filepath.Join(s.dir, fmt.Sprintf("first-%d", size))
	return name, os.WriteFile(name, text[:min(size, len(text))], 0o644)
}

// smallReproduction is the time of `heddle reproduce` for a failure of a program that gcc has compiled with its
// default options.
func smallReproduction(s *setting) (result, error) {
	bin, trace := filepath.Join(s.dir, "bank"), filepath.Join(s.dir, "bank.trace")
	if _, err := s.run("gcc", "-pthread", "-o", bin, "docs/bank.c"); err != nil {
		return result{}, err
	}
	if _, err := s.runFailing(s.heddle, "find", "-q", "--minimize=0", "-o", trace, "--", bin); err != nil {
		return result{}, err
	}
	var times []timing
	for range s.repeat {
		t, err := s.run(s.heddle, "reproduce", "-o", filepath.Join(s.dir, "bank.schedule"), trace)
		if err != nil {
			return result{}, err
		}
		times = append(times, t)
	}
	seconds := leastProcessor(times).Seconds()
	return result{
		title:    "a failure of a default build of docs/bank.c: a schedule by heddle reproduce, recording of branches included",
		measured: fmt.Sprintf("%.2f s of processor time", seconds),
		target:   "under 2 s",
		met:      seconds < 2,
	}, nil
}

// runFailing runs a command whose status says that the program has failed.
func (s *setting) runFailing(command ...string) (timing, error) {
	t, err := s.run(command...)
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() > 0 {
		err = nil
	}
	return t, err
}

// memoized is how long it takes to memoize the programs of configs/strangers of which that takes longest.
func memoized(s *setting) (result, error) {
	text, err := s.beginning(20_000)
	if err != nil {
		return result{}, err
	}
	numbers, column := filepath.Join(s.dir, "numbers"), filepath.Join(s.dir, "column")
	if err := errors.Join(makeNumbers(numbers, 440_000, ""), makeNumbers(column, 58_000, "number\n")); err != nil {
		return result{}, err
	}
	var worst float64
	var parts []string
	for _, program := range [][]string{
		{"pbzip2", "-p4", "-b1", "-k", "-c", text},
		{"xz", "-T2", "-k", "-c", text},
		{"sort", "--parallel=4", "-S", "100M", numbers},
		{"sqlite3", "-cmd", ".import " + filepath.Base(column) + " t", ":memory:", "pragma threads=4; pragma cache_size=4; create table u(a); insert into u select * from t; create index i on u(a); select count(*), sum(a) from u;"},
	} {
		var times []timing
		for i := range s.repeat {
			cache := filepath.Join(s.dir, fmt.Sprintf("cache-%s-%d", program[0], i))
			t, err := s.run(slices.Concat([]string{s.heddle, "run", "-q", "--cache=" + cache, "--memoize=online", "--mount=" + s.dir + ":" + s.dir, "--chdir=" + s.dir, "--"}, program)...)
			if err != nil {
				return result{}, err
			}
			times = append(times, t)
		}
		seconds := leastProcessor(times).Seconds()
		worst = max(worst, seconds)
		parts = append(parts, fmt.Sprintf("%s %.1f s", program[0], seconds))
	}
	return result{
		title:    "memoizing programs of Debian (docs/strangers.md), recording included",
		measured: strings.Join(parts, ", ") + " of processor time",
		target:   fmt.Sprintf("under %.0f s each", memoizeLimit.Seconds()),
		met:      worst < memoizeLimit.Seconds(),
	}, nil
}

// lookUp is what looking for a schedule costs a short program whose input none of the cache admits.
func lookUp(s *setting) (result, error) {
	const entries = 30
	bin, cache := filepath.Join(s.dir, "divide"), filepath.Join(s.dir, "cache-divide")
	if _, err := s.run("gcc", "-pthread", "-o", bin, "experiments/concolicrun/testdata/divide.c"); err != nil {
		return result{}, err
	}
	options := []string{"--stdin=/dev/null", "--cache=" + cache}
	run := func(options []string, threads int) (timing, error) {
		count := strconv.Itoa(threads)
		return s.run(slices.Concat([]string{s.heddle, "run", "-q"}, options, []string{"--", bin, count, count, "0"})...)
	}
	for i := range entries {
		if _, err := run(append(options, "--memoize=online"), 2+i); err != nil {
			return result{}, err
		}
	}
	var with, without []timing
	for range 10 {
		a, b, err := s.turns(
			func() (timing, error) { return run(options, 2+entries) },
			func() (timing, error) { return run(options[:1], 2+entries) })
		if err != nil {
			return result{}, err
		}
		with, without = append(with, a...), append(without, b...)
	}
	times := leastProcessor(with).Seconds() / leastProcessor(without).Seconds()
	return result{
		title:    fmt.Sprintf("a short run that looks for a schedule among %d of its program, none of which admits it, to one without a cache", entries),
		measured: fmt.Sprintf("%.2f", times),
		target:   "at most 1.1",
		met:      times <= 1.1,
	}, nil
}

const memoizeLimit = 60 * time.Second

// makeNumbers writes lines of numbers below a million, the same each time.
func makeNumbers(path string, count int, first string) error {
	var b strings.Builder
	b.WriteString(first)
	for x := uint64(1); count > 0; count-- {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintln(&b, x>>33%1_000_000)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
