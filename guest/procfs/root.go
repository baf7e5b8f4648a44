package procfs

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// procRoot is /proc.
var procRoot = &entry{
	entries: []*entry{
		constantFile("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"),
		constantFile("cmdline", "\n"),
		printedFile("cpuinfo", printCPUInfo),
		constantFile("devices", "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/ptmx\n128 ptm\n136 pts\n\nBlock devices:\n"),
		constantFile("diskstats", ""),
		constantFile("filesystems", "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\tsockfs\nnodev\tpipefs\nnodev\tdevpts\nnodev\tmqueue\nnodev\toverlay\n"),
		printedFile("interrupts", printInterrupts),
		lineFile("loadavg", loadText),
		constantFile("locks", ""),
		printedFile("meminfo", printMeminfo),
		constantFile("modules", ""),
		constantLink("mounts", "self/mounts"),
		constantLink("net", "self/net"),
		constantFile("partitions", "major minor  #blocks  name\n\n"),
		{name: "self", link: selfLink},
		printedFile("stat", printStat),
		constantFile("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
		procSys,
		sysvipc,
		{name: "thread-self", link: threadSelfLink},
		lineFile("uptime", uptimeText),
		lineFile("version", versionText),
		printedFile("vmstat", printVMStat),
	},
	dynamic: &dynamic{
		entry: processDir,
		list:  func(r *request) []int32 { return r.kernel.Processes() },
		about: func(r *request, n int32) (target, bool) {
			p := r.kernel.Process(n)
			if p == nil {
				return target{}, false
			}
			return target{process: p.ID(), thread: n}, true
		},
	},
}

func selfLink(r *request) (string, unix.Errno) {
	if r.c.PID == 0 {
		return "", unix.ENOENT
	}
	return decimal(r.c.PID), 0
}

func threadSelfLink(r *request) (string, unix.Errno) {
	if r.c.PID == 0 {
		return "", unix.ENOENT
	}
	return fmt.Sprintf("%d/task/%d", r.c.PID, r.c.TID), 0
}

// loadText shows no load in the past: the machine is as old as the run.
func loadText(r *request) string {
	m := r.kernel.Machine()
	return fmt.Sprintf("0.00 0.00 0.00 %d/%d %d", m.Running, m.Threads, m.LastID)
}

func uptimeText(r *request) string {
	m := r.kernel.Machine()
	idle := int64(0)
	for _, t := range m.Times {
		idle += t.IdleNS
	}
	return secondsText(m.UptimeNS) + " " + secondsText(idle)
}

func versionText(r *request) string {
	m := r.kernel.Machine()
	return fmt.Sprintf("Linux version %s (heddle@heddle) %s", m.Release, m.Version)
}

func printStat(r *request, p *textPrinter) {
	m := r.kernel.Machine()
	var all CoreTimes
	for _, t := range m.Times {
		all.UserNS += t.UserNS
		all.SystemNS += t.SystemNS
		all.IdleNS += t.IdleNS
	}
	line := func(name string, t CoreTimes) {
		p.printf("%s %d 0 %d %d 0 0 0 0 0 0\n", name, toTicks(t.UserNS), toTicks(t.SystemNS), toTicks(t.IdleNS))
	}
	line("cpu ", all)
	for i, t := range m.Times {
		line(fmt.Sprintf("cpu%d", i), t)
	}
	p.printf("intr 0\nctxt %d\nbtime %d\nprocesses %d\nprocs_running %d\nprocs_blocked %d\n",
		m.Switches, m.BootNS/1_000_000_000, m.Forks, m.Running, m.Blocked)
	p.printf("softirq 0 0 0 0 0 0 0 0 0 0 0\n")
}

func printInterrupts(r *request, p *textPrinter) {
	p.WriteString("     ")
	for i := range r.kernel.Machine().Cores {
		p.printf("%-11s", fmt.Sprintf("      CPU%d", i))
	}
	p.WriteByte('\n')
}

func printMeminfo(r *request, p *textPrinter) {
	m := r.kernel.Machine()
	for _, l := range []struct {
		name string
		kB   uint64
	}{
		{"MemTotal", kibibytes(m.MemoryBytes)},
		{"MemFree", kibibytes(m.FreeBytes)},
		{"MemAvailable", kibibytes(m.FreeBytes + m.CacheBytes)},
		{"Buffers", 0},
		{"Cached", kibibytes(m.CacheBytes + m.SharedBytes)},
		{"SwapCached", 0},
		{"Active", kibibytes(m.AnonBytes)},
		{"Inactive", kibibytes(m.CacheBytes)},
		{"Active(anon)", kibibytes(m.AnonBytes)},
		{"Inactive(anon)", 0},
		{"Active(file)", 0},
		{"Inactive(file)", kibibytes(m.CacheBytes)},
		{"Unevictable", 0},
		{"Mlocked", 0},
		{"SwapTotal", 0},
		{"SwapFree", 0},
		{"Dirty", 0},
		{"Writeback", 0},
		{"AnonPages", kibibytes(m.AnonBytes)},
		{"Mapped", kibibytes(m.CacheBytes)},
		{"Shmem", kibibytes(m.SharedBytes)},
		{"KReclaimable", 0},
		{"Slab", 0},
		{"SReclaimable", 0},
		{"SUnreclaim", 0},
		{"KernelStack", uint64(m.Threads) * 16},
		{"PageTables", 0},
		{"CommitLimit", kibibytes(m.MemoryBytes)},
		{"Committed_AS", kibibytes(m.AnonBytes + m.SharedBytes)},
		{"VmallocTotal", 34359738367},
		{"VmallocUsed", 0},
		{"VmallocChunk", 0},
		{"AnonHugePages", 0},
		{"ShmemHugePages", 0},
	} {
		p.printf("%-16s%8d kB\n", l.name+":", l.kB)
	}
	p.WriteString("HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\n" +
		"HugePages_Surp:        0\nHugepagesize:       2048 kB\nHugetlb:               0 kB\n")
}

func printVMStat(r *request, p *textPrinter) {
	m := r.kernel.Machine()
	p.printf("nr_free_pages %d\nnr_anon_pages %d\nnr_file_pages %d\nnr_shmem %d\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\n",
		m.FreeBytes/pageSize, m.AnonBytes/pageSize, m.CacheBytes/pageSize, m.SharedBytes/pageSize)
}

const pageSize = 4096

// mountEscapes are the characters that the mount tables print in octal.
var mountEscapes = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, "#", `\043`)

func printMounts(r *request, p *textPrinter) {
	for _, m := range r.fs.Mounts() {
		p.printf("%s %s %s %s 0 0\n", m.Source, mountEscapes.Replace(m.Path), m.Super.Type, m.Options)
	}
}

// firstMount is the number of the first mount in mountinfo.
const firstMount = 20

func printMountInfo(r *request, p *textPrinter) {
	all := r.fs.Mounts()
	for i, m := range all {
		parent := firstMount - 1
		if i > 0 {
			parent = firstMount + mountAbove(all, i)
		}
		p.printf("%d %d %d:%d / %s %s - %s %s rw\n", firstMount+i, parent, unix.Major(m.Super.Dev), unix.Minor(m.Super.Dev),
			mountEscapes.Replace(m.Path), m.Options, m.Super.Type, m.Source)
	}
}

// mountAbove is the index of the mount that contains mount i.
func mountAbove(all []vfs.MountInfo, i int) int {
	best := 0
	for j, m := range all {
		if j != i && strings.HasPrefix(all[i].Path, strings.TrimSuffix(m.Path, "/")+"/") && len(m.Path) > len(all[best].Path) {
			best = j
		}
	}
	return best
}
