package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// measurements are the lines of the table, in order.
var measurements = []func(*setting) (result, error){
	cpuBound, pbzip2, pbzip2All, zstd, zstdAll, startUp, threadSwitch, mappings, mprotect, spinning, memory, snapshotIdle, snapshotPage, snapshotSpeed,
	branchTracingLoop, branchTracingPbzip2, branchDecoder, branchSize, branchSizeStored, branchEncoder,
	memoryTrace, memoryTraceSize, memoryTraceLackey, raceSpeed("hb"), raceSpeed("schedule"), raceyRaces, raceyHybrid,
	enforcedPbzip2, enforcedRacey, enforcedRaceyFine,
	litmusTest("SB", 20), litmusTest("MP", 20), litmusTest("IRIW", 1000), litmusSuite, findSchedules, findDecisions, exploreExecutions,
	tsoLoop("exact", 0.25), tsoPbzip2("exact", 0.12), tsoLoop("pages", 0.6), tsoPbzip2("pages", 0.6),
	symbolicSpeed, symbolicMemory, slicingSpeed, simplificationSpeed, preconditionCheck,
	frostPipeline, frostSetUp, apache,
	directPbzip2, directZstd, directFFT, directPython, directStartUp, directBranches,
	loggedAccesses("integers", "pbzip2 -p2", 1.6), loggedAccesses("reals", "fft of 2^20 points, two threads,", 2.2), directMemoryTrace, directMemoryReplay, directTSO, directRaces,
	reproduced("bbuf", 2), reproduced("racey1", 20), reproduced("racey2", 60), reproduced("racey3", 180),
	solvedByZ3("bbuf", 52), solvedByZ3("sbuf", 1), solvedByZ3("pfscan", 1), solvedByZ3("pbzip2", 1), solvedByZ3("racey1", 267), symbolicTraces, branchesReproduced,
	sharding, storedRuns("table", "BenchmarkTableOf100000Runs", 5), storedRuns("merge", "BenchmarkMergeOf100000Runs", 30),
	racesOfPbzip2, smallReproduction, memoized, lookUp,
}

// timing is one run of a command.
type timing struct {
	wall      time.Duration
	processor time.Duration // of the user and of the system
	maxRSS    int64         // bytes
	summary
}

// summary is the part of heddle's summary that is needed here.
type summary struct {
	ContextSwitches uint64            `json:"context_switches"`
	PeakMemory      uint64            `json:"peak_memory"`
	Instructions    uint64            `json:"instructions"`
	HostSeconds     float64           `json:"host_seconds"`
	Syscalls        map[string]uint64 `json:"syscalls"`
	Schedule        struct {
		Constraints float64 `json:"constraints"`
	} `json:"schedule"`
}

// runCommand runs a command and demands that it succeeds.
func runCommand(command ...string) (timing, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	err := cmd.Run()
	t := timing{wall: time.Since(start)}
	if err != nil {
		return t, fmt.Errorf("%v: %w", command, err)
	}
	t.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.maxRSS = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	return t, nil
}

// underHeddle runs a command on the machine; options come before it, and the
// prefix before heddle.
func (s *setting) underHeddle(prefix, options []string, command ...string) (timing, error) {
	file := filepath.Join(s.dir, "summary.json")
	args := slices.Concat(prefix, []string{s.heddle, "run", "-q", "--summary", file}, options, []string{"--"}, command)
	t, err := s.run(args...)
	if err != nil {
		return t, err
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &t.summary)
	}
	return t, err
}

// best is the shortest of several timings.
func best(times []timing) timing {
	return slices.MinFunc(times, func(a, b timing) int { return cmp.Compare(a.wall, b.wall) })
}

// inTurn runs both several times, one after the other, and returns the best of
// each.
func (s *setting) inTurn(one, other func() (timing, error)) (timing, timing, error) {
	ones, others, err := s.turns(one, other)
	if err != nil {
		return timing{}, timing{}, err
	}
	return best(ones), best(others), nil
}

// turns runs both several times, one after the other.
func (s *setting) turns(one, other func() (timing, error)) (ones, others []timing, err error) {
	for range s.repeat {
		for _, side := range []struct {
			run  func() (timing, error)
			into *[]timing
		}{{one, &ones}, {other, &others}} {
			t, err := side.run()
			if err != nil {
				return nil, nil, err
			}
			*side.into = append(*side.into, t)
		}
	}
	return ones, others, nil
}

// against is heddle's speed on a command as a share of qemu-x86_64's. The prefix
// starts both.
func (s *setting) against(prefix, options, command []string) (share float64, measured string, err error) {
	mine, qemu, err := s.inTurn(
		func() (timing, error) { return s.underHeddle(prefix, options, command...) },
		func() (timing, error) { return s.run(slices.Concat(prefix, []string{"qemu-x86_64"}, command)...) })
	share = qemu.wall.Seconds() / mine.wall.Seconds()
	return share, fmt.Sprintf("%.2f (%.2f s against %.2f s)", share, mine.wall.Seconds(), qemu.wall.Seconds()), err
}

// oneCore keeps a command on one core of the host. heddle runs a machine on one;
// qemu-x86_64 would run the guest's threads on all of them, and the ratio would
// depend on the number of the host's cores. It is the last one: the first tends to be
// the one that the host's own work disturbs.
var oneCore = []string{"taskset", "-c", strconv.Itoa(runtime.NumCPU() - 1)}

// againstQemu compares on one core of the host.
func (s *setting) againstQemu(title string, target float64, options []string, command ...string) (result, error) {
	share, measured, err := s.against(oneCore, options, command)
	return result{
		title:    title + ", speed in ratio to qemu-x86_64, both on one host core",
		measured: measured,
		target:   fmt.Sprintf("at least %.2f", target),
		met:      share >= target,
	}, err
}

func cpuBound(s *setting) (result, error) {
	return s.againstQemu("CPU-bound, one thread", 0.6, []string{"--cores=1"}, s.guest, "cpu", "60")
}

var compressors = map[string][]string{
	"pbzip2 -p4": {"/usr/bin/pbzip2", "-p4", "-k"},
	"zstd -T4":   {"/usr/bin/zstd", "-T4", "-B512K", "-q"},
}

// compressor is a measurement of one of the compressors with four threads.
func (s *setting) compressor(name string) (result, error) {
	options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
	return s.againstQemu(name, 0.35, options, append(slices.Clone(compressors[name]), "-c", s.input)...)
}

// compressorAll measures the same where qemu-x86_64 has all cores of the host.
func (s *setting) compressorAll(name string) (result, error) {
	options := []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}
	_, measured, err := s.against(nil, options, append(slices.Clone(compressors[name]), "-c", s.input))
	return result{
		title:    fmt.Sprintf("%s, the same with %d host cores, of which heddle uses one", name, runtime.NumCPU()),
		measured: measured,
		target:   "none",
		met:      true,
	}, err
}

func pbzip2(s *setting) (result, error)    { return s.compressor("pbzip2 -p4") }
func pbzip2All(s *setting) (result, error) { return s.compressorAll("pbzip2 -p4") }
func zstd(s *setting) (result, error)      { return s.compressor("zstd -T4") }
func zstdAll(s *setting) (result, error)   { return s.compressorAll("zstd -T4") }

func startUp(s *setting) (result, error) {
	more := *s
	more.repeat *= 10
	mine, qemu, err := more.inTurn(
		func() (timing, error) { return s.underHeddle(nil, nil, "/bin/true") },
		func() (timing, error) { return s.run("qemu-x86_64", "/bin/true") })
	times := mine.wall.Seconds() / qemu.wall.Seconds()
	return result{
		title:    "start to end of /bin/true, in times of qemu-x86_64's",
		measured: fmt.Sprintf("%.2f (%.1f ms against %.1f ms)", times, 1e3*mine.wall.Seconds(), 1e3*qemu.wall.Seconds()),
		target:   "at most 3",
		met:      times <= 3,
	}, err
}

// perUnit is the price of one unit when two runs differ in the number of units
// alone.
func perUnit(with, without timing, units float64) float64 {
	return 1e6 * (with.HostSeconds - without.HostSeconds) / units
}

// threadSwitch compares 64 threads that take long turns with the same that take
// short ones.
func threadSwitch(s *setting) (result, error) {
	turns := func(quantum string) func() (timing, error) {
		return func() (timing, error) {
			return s.underHeddle(nil, []string{"--cores=1", "--sched=rr", "--quantum=" + quantum}, s.guest, "threads", "64")
		}
	}
	short, long, err := s.inTurn(turns("2000"), turns("1000000"))
	each := perUnit(short, long, float64(short.ContextSwitches)-float64(long.ContextSwitches))
	return result{
		title:    "thread switch, 64 threads",
		measured: fmt.Sprintf("%.2f us (%d switches)", each, short.ContextSwitches),
		target:   "at most 1 us",
		met:      each <= 1 && short.ContextSwitches > long.ContextSwitches+10_000,
	}, err
}

// mappings compares the speed of a loop in a process with many mappings and in
// one with few.
func mappings(s *setting) (result, error) {
	loop := func(n string) func() (timing, error) {
		return func() (timing, error) { return s.underHeddle(nil, []string{"--cores=1"}, s.guest, "mappings", n) }
	}
	many, few, err := s.inTurn(loop("5000"), loop("30"))
	ratio := (many.HostSeconds / float64(many.Instructions)) / (few.HostSeconds / float64(few.Instructions))
	return result{
		title:    "time per instruction with 5,000 mappings, in times of that with 30",
		measured: fmt.Sprintf("%.2f", ratio),
		target:   "1, within 5 % of noise",
		met:      ratio <= 1.05,
	}, err
}

func mprotect(s *setting) (result, error) {
	const calls = 200_000
	protect := func(n int) func() (timing, error) {
		return func() (timing, error) {
			return s.underHeddle(nil, []string{"--cores=1"}, s.guest, "mprotect", strconv.Itoa(n))
		}
	}
	with, without, err := s.inTurn(protect(calls), protect(0))
	each := perUnit(with, without, calls)
	return result{
		title:    "mprotect of one page, system call and next access included",
		measured: fmt.Sprintf("%.2f us", each),
		target:   "at most 5 us",
		met:      each <= 5,
	}, err
}

// spinning compares a thread that spins with PAUSE with one that spins without, for the same
// virtual time.
func spinning(s *setting) (result, error) {
	spin := func(how string) func() (timing, error) {
		return func() (timing, error) { return s.underHeddle(nil, []string{"--cores=4"}, s.guest, how, "400") }
	}
	with, without, err := s.inTurn(spin("pause"), spin("spin"))
	second := with.HostSeconds / without.HostSeconds
	each := second * float64(without.Instructions) / float64(with.Instructions)
	return result{
		title:    "time per instruction of spinning with PAUSE, in times of spinning without",
		measured: fmt.Sprintf("%.2f (per virtual second: %.2f)", each, second),
		target:   "at most 1.5",
		met:      each <= 1.5 && second <= 1.5,
	}, err
}

// memory compares the resident size of heddle with the guest's.
func memory(s *setting) (result, error) {
	t, err := s.underHeddle(nil, []string{"--cores=4", "--mount=" + s.dir + ":" + s.dir}, "/usr/bin/pbzip2", "-p4", "-c", "-k", s.input)
	over := (float64(t.maxRSS) - float64(t.PeakMemory)) / (1 << 20)
	return result{
		title:    "host memory beyond the guest's own, pbzip2 -p4",
		measured: fmt.Sprintf("%.0f MB (guest: %.0f MB)", over, float64(t.PeakMemory)/(1<<20)),
		target:   "at most 150 MB",
		met:      over <= 150,
	}, err
}

var metric = regexp.MustCompile(`([0-9.e+-]+) ([^\s]+)`)

// goBenchmark runs a benchmark of a package and returns its figure in a unit.
func (s *setting) goBenchmark(pkg, name, unit string) (float64, error) {
	figures, err := s.goFigures(pkg, name)
	if err != nil {
		return 0, err
	}
	v, ok := figures[unit]
	if !ok {
		return 0, fmt.Errorf("benchmark %s reports no %s", name, unit)
	}
	return v, nil
}

// runBenchmark runs a benchmark of a package and returns its figures by unit.
func runBenchmark(pkg, name string) (map[string]float64, error) {
	goTool := os.Getenv("GO")
	if goTool == "" {
		goTool = "go"
	}
	out, err := exec.Command(goTool, "test", "-run", "^$", "-bench", "^"+name+"$", pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench %s %s: %w\n%s", name, pkg, err, out)
	}
	figures := map[string]float64{}
	for _, m := range metric.FindAllStringSubmatch(string(out), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue // not a figure after all
		}
		figures[m[2]] = v
	}
	return figures, nil
}

func snapshotIdle(s *setting) (result, error) {
	ratio, err := s.goBenchmark("./internal/machine", "BenchmarkSnapshotBySize", "large/small")
	return result{
		title:    "snapshot and restore of a guest of 1 GiB, in times of one of 64 MiB",
		measured: fmt.Sprintf("%.2f", ratio),
		target:   "1: no price per page of the guest's size",
		met:      ratio <= 1.2,
	}, err
}

func snapshotPage(s *setting) (result, error) {
	each, err := s.goBenchmark("./internal/machine", "BenchmarkSnapshotWritten", "us/page")
	return result{
		title:    "snapshot and restore, per page written since",
		measured: fmt.Sprintf("%.2f us", each),
		target:   "at most 2 us",
		met:      each <= 2,
	}, err
}

func snapshotSpeed(s *setting) (result, error) {
	share, err := s.goBenchmark("./internal/machine", "BenchmarkSnapshotAlive", "speed-ratio")
	return result{
		title:    "speed with a snapshot alive, once the written set is copied",
		measured: fmt.Sprintf("%.2f", share),
		target:   "at least 0.90",
		met:      share >= 0.9,
	}, err
}
