package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// The lines of this file are about the engine direct, in processor time of the user and the system, the
// start of heddle included.

// leastProcessor is the shortest processor time of several runs.
func leastProcessor(times []timing) time.Duration {
	return slices.MinFunc(times, func(a, b timing) int { return cmp.Compare(a.processor, b.processor) }).processor
}

// inProcessorTime compares two commands, which run in turn: one's time in times of the other's.
func (s *setting) inProcessorTime(title string, target float64, one, other []string) (result, error) {
	ones, others, err := s.turns(
		func() (timing, error) { return s.run(one...) },
		func() (timing, error) { return s.run(other...) })
	if err != nil {
		return result{}, err
	}
	a, b := leastProcessor(ones).Seconds(), leastProcessor(others).Seconds()
	times := a / b
	return result{
		title:    "engine direct: " + title,
		measured: fmt.Sprintf("%.2f (%.2f s against %.2f s of processor time)", times, a, b),
		target:   fmt.Sprintf("at most %.1f", target),
		met:      times <= target,
	}, err
}

// onDirect is a command of heddle with a program on the engine direct.
func (s *setting) onDirect(words []string, program ...string) []string {
	return slices.Concat([]string{s.heddle}, words, []string{"-q", "--engine=direct", "--mount=" + s.dir + ":" + s.dir, "--"}, program)
}

// againstNative compares a program with its native run.
func (s *setting) againstNative(title string, target float64, program ...string) (result, error) {
	return s.inProcessorTime(title+", in times of the native run", target, s.onDirect([]string{"run"}, program...), program)
}

func (s *setting) pbzip2() []string { return []string{"/usr/bin/pbzip2", "-p2", "-k", "-c", s.input} }

func directPbzip2(s *setting) (result, error) { return s.againstNative("pbzip2 -p2", 3, s.pbzip2()...) }

func directZstd(s *setting) (result, error) {
	return s.againstNative("zstd -12", 3, "/usr/bin/zstd", "-12", "-q", "-c", s.input)
}

// fft compiles the suite's kernel of that name.
func (s *setting) fft() ([]string, error) {
	bin := filepath.Join(s.dir, "fft")
	_, err := s.run("gcc", "-O2", "-D_GNU_SOURCE", "-pthread", "-Iguest/programs/suite/common", "-o", bin, "guest/programs/suite/fft/fft.c", "-lm")
	return []string{bin, "-m", "20", "-p", "2"}, err
}

func directFFT(s *setting) (result, error) {
	program, err := s.fft()
	if err != nil {
		return result{}, err
	}
	return s.againstNative("fft of 2^20 points, two threads", 3, program...)
}

const pythonLoop = `s = 0
d = {}
for i in range(4000000):
    s += i * i % 7
    d[i & 255] = s
print(s)`

func directPython(s *setting) (result, error) {
	return s.againstNative("python3, a loop of 4 million rounds", 6, "/usr/bin/python3", "-S", "-E", "-c", pythonLoop)
}

func directStartUp(s *setting) (result, error) {
	more := *s
	more.repeat *= 10
	ours, native, err := more.turns(
		func() (timing, error) { return s.run(s.onDirect([]string{"run"}, "/bin/true")...) },
		func() (timing, error) { return s.run("/bin/true") })
	if err != nil {
		return result{}, err
	}
	a, b := 1e3*leastProcessor(ours).Seconds(), 1e3*leastProcessor(native).Seconds()
	return result{
		title:    "engine direct: /bin/true",
		measured: fmt.Sprintf("%.0f ms of processor time (natively %.1f ms)", a, b),
		target:   "under 25 ms",
		met:      a < 25,
	}, err
}

// againstPlain compares a way to run pbzip2 with a plain run.
func (s *setting) againstPlain(title string, target float64, words ...string) (result, error) {
	return s.inProcessorTime("pbzip2 -p2 "+title+", in times of the same run without", target,
		s.onDirect(words, s.pbzip2()...), s.onDirect([]string{"run"}, s.pbzip2()...))
}

func (s *setting) trace() string { return filepath.Join(s.dir, "direct.trace") }

func directBranches(s *setting) (result, error) {
	return s.againstPlain("with branches recorded", 1.3, "record", "--pt", "-o", s.trace())
}

// loggedAccesses is what it costs to log every access, and to keep nothing.
func loggedAccesses(kind, title string, target float64) func(*setting) (result, error) {
	return func(s *setting) (result, error) {
		times, err := s.goBenchmark("./internal/machine", "BenchmarkLoggedAccesses", kind+"-times")
		return result{
			title:    "engine direct: " + title + " with every access logged in memory, in times of the same run without",
			measured: fmt.Sprintf("%.2f", times),
			target:   fmt.Sprintf("at most %.1f", target),
			met:      times > 0 && times <= target,
		}, err
	}
}

func directMemoryTrace(s *setting) (result, error) {
	return s.againstPlain("with every access recorded to disk, stored (--memory=stored)", 3, "record", "--memory=stored", "-o", s.trace())
}

func directMemoryReplay(s *setting) (result, error) {
	return s.againstPlain("with every access recorded to disk, for a replay when it is read (--memory)", 3,
		"record", "--memory", "-o", s.trace())
}

func directTSO(s *setting) (result, error) {
	return s.againstPlain("under exact TSO", 2.5, "run", "--model=tso")
}

func directRaces(s *setting) (result, error) {
	return s.inProcessorTime("races of pbzip2 -p2, in times of helgrind's", 1,
		s.onDirect([]string{"races", "-o", filepath.Join(s.dir, "races")}, s.pbzip2()...), slices.Concat([]string{"valgrind", "-q", "--log-file=" + filepath.Join(s.dir, "helgrind.log"), "--tool=helgrind"}, s.pbzip2()))
}
