// Package doctor checks whether the host has what heddle needs: its processor, libraries, memory,
// limits and programs. It changes nothing.
//
// ThisHost returns the host as it is; Report prints a line for each check, with the cure of what is
// wrong.
package doctor

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/emu/uc"
	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/internal/dynlib"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// A verdict is the result of a check. Bad means that heddle cannot work; a note,
// that it works with less speed, or without a part that not everyone needs.
type verdict int

const (
	fine verdict = iota
	note
	bad
)

func (v verdict) String() string { return [...]string{"ok", "note", "BAD"}[v] }

// finding is the result of one check.
type finding struct {
	thing   string
	verdict verdict
	found   string
	advice  string // the cure, unless all is fine
}

// A Host is a host as it is checked, so that tests can replace it.
type Host struct {
	unicorn  [3]int // the version; zero without the library
	z3       bool   // there is the library
	plots    bool   // there is the program that draws plots
	direct   bool   // the engine direct runs on it
	platform string
	read     func(path string) ([]byte, error)
	look     func(program string) (string, error)
	limit    func(resource int) (uint64, error)
	tempFree func() (uint64, error) // bytes
}

// ThisHost returns the host that heddle runs on.
func ThisHost() Host {
	var unicorn [3]int
	if dynlib.HasUnicorn() {
		unicorn = uc.Version()
	}
	return Host{
		direct:   engines.Check(engines.Direct, arch.V2) == nil,
		unicorn:  unicorn,
		z3:       dynlib.HasZ3(),
		plots:    plots.IsInstalled(),
		platform: runtime.GOOS + "/" + runtime.GOARCH,
		read:     os.ReadFile,
		look:     exec.LookPath,
		limit: func(resource int) (uint64, error) {
			var limit unix.Rlimit
			err := unix.Getrlimit(resource, &limit)
			return limit.Cur, err
		},
		tempFree: func() (uint64, error) {
			var s unix.Statfs_t
			err := unix.Statfs(os.TempDir(), &s)
			return s.Bavail * uint64(s.Bsize), err
		},
	}
}

// checks are all checks, in the order of the report.
var checks = []func(Host) finding{
	checkPlatform, checkUnicorn, checkZ3, checkEngines, checkLoader, checkMemory, checkOvercommit, checkAddressSpace, checkMaps,
	checkFiles, checkTemp, checkPlots, checkSlurm, checkDemo, checkTools,
}

// Report prints the result of each check, and reports whether heddle can work.
func Report(out io.Writer, h Host) (works bool, err error) {
	works = true
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, check := range checks {
		f := check(h)
		fmt.Fprintf(table, "%v\t%s\t%s\n", f.verdict, f.thing, f.found)
		if f.verdict != fine {
			fmt.Fprintf(table, "\t\t-> %s\n", f.advice)
		}
		if f.verdict == bad {
			works = false
		}
	}
	return works, table.Flush()
}

func checkPlatform(h Host) finding {
	f := finding{thing: "platform", found: h.platform}
	if release, err := h.read("/proc/sys/kernel/osrelease"); err == nil {
		f.found += ", kernel " + strings.TrimSpace(string(release))
	}
	if h.platform != "linux/amd64" {
		f.verdict, f.advice = bad, "run heddle on x86-64 Linux: the guest's programs and libraries are the host's"
	}
	return f
}

func checkUnicorn(h Host) finding {
	v := h.unicorn
	if v == [3]int{} {
		f := finding{
			"Unicorn library", note, "none",
			"install libunicorn2t64 2.1.1 of Debian 13, whose package works on Debian 12, too, for --engine " + engines.Unicorn + "; runs use " + engines.Direct + " meanwhile",
		}
		if !h.direct {
			f.verdict = bad
		}
		return f
	}
	f := finding{thing: "Unicorn library", found: fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])}
	switch order := slices.Compare(v[:], uc.MinVersion[:]); {
	case order < 0:
		f.verdict, f.advice = bad, "install libunicorn-dev 2.1.1; internal/setup/packages.sh build does it on Debian 12 and 13"
	case order > 0:
		f.verdict, f.advice = note, "2.1.1 is the version that was measured; 2.1.4 runs programs 3 to 9 times slower"
	}
	return f
}

func checkZ3(h Host) finding {
	if !h.z3 {
		return finding{"Z3 library", note, "none", "install libz3-4, which memoization, slicing and the computation of schedules need"}
	}
	return finding{thing: "Z3 library", found: "libz3"}
}

func checkPlots(h Host) finding {
	if !h.plots {
		return finding{"drawing of plots", note, plots.Program + " is missing", "`make build` makes it beside heddle: experiment plot needs it"}
	}
	return finding{thing: "drawing of plots", found: plots.Program}
}

// checkSlurm finds nothing wrong: a host without Slurm is a usual one.
func checkSlurm(h Host) finding {
	if _, err := h.look("sbatch"); err != nil {
		return finding{thing: "Slurm", found: "none; experiment run --slurm cannot be used from here"}
	}
	return finding{thing: "Slurm", found: "sbatch"}
}

func checkEngines(h Host) finding {
	var usable []string
	if h.unicorn != [3]int{} {
		usable = append(usable, engines.Unicorn)
	}
	if h.direct {
		usable = append(usable, engines.Direct)
	}
	f := finding{thing: "engines", found: cmp.Or(strings.Join(usable, ", "), "none")}
	if !h.direct {
		f.verdict = note
		f.advice = "--engine " + engines.Direct + " needs a host processor with the instructions of " + arch.V2.String() + "; every run can use " + engines.Unicorn
	}
	return f
}

func checkLoader(h Host) finding {
	const loader = "/lib64/ld-linux-x86-64.so.2"
	if _, err := h.read(loader); err != nil {
		return finding{
			"dynamic loader", note, loader + " is missing",
			"install libc6, or use --rootfs with a tree that has it; static programs run without",
		}
	}
	return finding{thing: "dynamic loader", found: loader}
}

func checkMemory(h Host) finding {
	const need = 2 << 20 // KiB
	f := finding{thing: "memory"}
	available, err := field(h, "/proc/meminfo", "MemAvailable:")
	if err != nil {
		return finding{"memory", note, "/proc/meminfo cannot be read", "mount /proc, so that tools can tell how much is free"}
	}
	f.found = fmt.Sprintf("%d MiB available", available>>10)
	if available < need {
		f.verdict, f.advice = note, "2 GiB are needed for large programs and sweeps; free some, or use --max-memory and experiment run --workers 1"
	}
	return f
}

func checkOvercommit(h Host) finding {
	f := finding{thing: "overcommit"}
	mode, err := oneNumber(h, "/proc/sys/vm/overcommit_memory")
	if err != nil {
		return finding{"overcommit", note, "the mode cannot be read", "see that vm.overcommit_memory is 0 or 1"}
	}
	f.found = fmt.Sprintf("mode %d", mode)
	if mode == 2 {
		f.verdict, f.advice = bad, "the guest's memory is reserved address space: set vm.overcommit_memory=0 with sysctl, or lower --max-memory to what may be committed"
	}
	return f
}

func checkAddressSpace(h Host) finding {
	need := machine.DefaultConfig().MaxMemory + 2<<30 // and the engine's own reservation
	return checkLimit(h, "address space", unix.RLIMIT_AS, need, bad,
		"raise it with ulimit -v unlimited, or lower --max-memory")
}

func checkMaps(h Host) finding {
	n, err := oneNumber(h, "/proc/sys/vm/max_map_count")
	if err != nil || n < 10_000 {
		return finding{"memory mappings", note, fmt.Sprintf("%d allowed", n), "set vm.max_map_count=65530 with sysctl"}
	}
	return finding{thing: "memory mappings", found: fmt.Sprintf("%d allowed", n)}
}

func checkFiles(h Host) finding {
	return checkLimit(h, "open files", unix.RLIMIT_NOFILE, 1024, note, "raise it with ulimit -n 1024: guests that open many host files need it")
}

func checkLimit(h Host, thing string, resource int, need uint64, worst verdict, advice string) finding {
	limit, err := h.limit(resource)
	if err != nil {
		return finding{thing, note, "the limit cannot be read", advice}
	}
	f := finding{thing: thing, found: "limit " + strconv.FormatUint(limit, 10)}
	if limit == unix.RLIM_INFINITY {
		f.found = "no limit"
	}
	if limit < need {
		f.verdict, f.advice = worst, advice
	}
	return f
}

func checkTemp(h Host) finding {
	free, err := h.tempFree()
	f := finding{thing: "temporary files", found: fmt.Sprintf("%d MiB free in %s", free>>20, os.TempDir())}
	if err != nil || free < 1<<30 {
		f.verdict, f.advice = note, "--verify keeps event logs there: make room, or set TMPDIR to another folder"
	}
	return f
}

func checkDemo(h Host) finding {
	return checkPrograms(h, "programs of the demo", []string{"pbzip2", "pigz", "zstd"}, "internal/setup/packages.sh demo installs them, or apt-get those packages")
}

func checkTools(h Host) finding {
	return checkPrograms(h, "tools of the tests", []string{"gcc", "qemu-x86_64"}, "internal/setup/packages.sh test installs them")
}

func checkPrograms(h Host, thing string, programs []string, advice string) finding {
	var missing []string
	for _, program := range programs {
		if _, err := h.look(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return finding{thing, note, "missing: " + strings.Join(missing, ", "), advice}
	}
	return finding{thing: thing, found: strings.Join(programs, ", ")}
}

// field reads a number after a name in a file of the proc file system.
func field(h Host, path, name string) (uint64, error) {
	text, err := h.read(path)
	if err != nil {
		return 0, err
	}
	words := strings.Fields(string(text))
	i := slices.Index(words, name)
	if i < 0 || i+1 == len(words) {
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(words[i+1], 10, 64)
}

// oneNumber reads a file that holds one number.
func oneNumber(h Host, path string) (uint64, error) {
	text, err := h.read(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
