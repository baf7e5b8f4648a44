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
		fixed("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"),
		fixed("cmdline", "\n"),
		printed("cpuinfo", cpuinfo),
		fixed("devices", "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/ptmx\n128 ptm\n136 pts\n\nBlock devices:\n"),
		fixed("diskstats", ""),
		fixed("filesystems", "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\tsockfs\nnodev\tpipefs\nnodev\tdevpts\nnodev\tmqueue\nnodev\toverlay\n"),
		printed("interrupts", interrupts),
		line("loadavg", loadavg),
		fixed("locks", ""),
		printed("meminfo", meminfo),
		fixed("modules", ""),
		linkTo("mounts", "self/mounts"),
		linkTo("net", "self/net"),
		fixed("partitions", "major minor  #blocks  name\n\n"),
		{name: "self", link: self},
		printed("stat", stat),
		fixed("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
		procSys,
		sysvipc,
		{name: "thread-self", link: threadSelf},
		line("uptime", uptime),
		line("version", version),
		printed("vmstat", vmstat),
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

func self(r *request) (string, unix.Errno) {
	if r.c.PID == 0 {
		return "", unix.ENOENT
	}
	return itoa(r.c.PID), 0
}

func threadSelf(r *request) (string, unix.Errno) {
	if r.c.PID == 0 {
		return "", unix.ENOENT
	}
	return fmt.Sprintf("%d/task/%d", r.c.PID, r.c.TID), 0
}

// loadavg tells of no load in the past: the machine is as old as the run.
func loadavg(r *request) string {
	m := r.kernel.Machine()
	return fmt.Sprintf("0.00 0.00 0.00 %d/%d %d", m.Running, m.Threads, m.LastID)
}

func uptime(r *request) string {
	m := r.kernel.Machine()
	idle := int64(0)
	for _, t := range m.Times {
		idle += t.IdleNS
	}
	return seconds(m.UptimeNS) + " " + seconds(idle)
}

func version(r *request) string {
	m := r.kernel.Machine()
	return fmt.Sprintf("Linux version %s (heddle@heddle) %s", m.Release, m.Version)
}

func stat(r *request, p *printer) {
	m := r.kernel.Machine()
	var all CoreTimes
	for _, t := range m.Times {
		all.UserNS += t.UserNS
		all.SystemNS += t.SystemNS
		all.IdleNS += t.IdleNS
	}
	line := func(name string, t CoreTimes) {
		p.f("%s %d 0 %d %d 0 0 0 0 0 0\n", name, ticks(t.UserNS), ticks(t.SystemNS), ticks(t.IdleNS))
	}
	line("cpu ", all)
	for i, t := range m.Times {
		line(fmt.Sprintf("cpu%d", i), t)
	}
	p.f("intr 0\nctxt %d\nbtime %d\nprocesses %d\nprocs_running %d\nprocs_blocked %d\n",
		m.Switches, m.BootNS/1_000_000_000, m.Forks, m.Running, m.Blocked)
	p.f("softirq 0 0 0 0 0 0 0 0 0 0 0\n")
}

func interrupts(r *request, p *printer) {
	p.WriteString("     ")
	for i := range r.kernel.Machine().Cores {
		p.f("%-11s", fmt.Sprintf("      CPU%d", i))
	}
	p.WriteByte('\n')
}

func meminfo(r *request, p *printer) {
	m := r.kernel.Machine()
	for _, l := range []struct {
		name string
		kB   uint64
	}{
		{"MemTotal", kB(m.MemoryBytes)},
		{"MemFree", kB(m.FreeBytes)},
		{"MemAvailable", kB(m.FreeBytes + m.CacheBytes)},
		{"Buffers", 0},
		{"Cached", kB(m.CacheBytes + m.SharedBytes)},
		{"SwapCached", 0},
		{"Active", kB(m.AnonBytes)},
		{"Inactive", kB(m.CacheBytes)},
		{"Active(anon)", kB(m.AnonBytes)},
		{"Inactive(anon)", 0},
		{"Active(file)", 0},
		{"Inactive(file)", kB(m.CacheBytes)},
		{"Unevictable", 0},
		{"Mlocked", 0},
		{"SwapTotal", 0},
		{"SwapFree", 0},
		{"Dirty", 0},
		{"Writeback", 0},
		{"AnonPages", kB(m.AnonBytes)},
		{"Mapped", kB(m.CacheBytes)},
		{"Shmem", kB(m.SharedBytes)},
		{"KReclaimable", 0},
		{"Slab", 0},
		{"SReclaimable", 0},
		{"SUnreclaim", 0},
		{"KernelStack", uint64(m.Threads) * 16},
		{"PageTables", 0},
		{"CommitLimit", kB(m.MemoryBytes)},
		{"Committed_AS", kB(m.AnonBytes + m.SharedBytes)},
		{"VmallocTotal", 34359738367},
		{"VmallocUsed", 0},
		{"VmallocChunk", 0},
		{"AnonHugePages", 0},
		{"ShmemHugePages", 0},
	} {
		p.f("%-16s%8d kB\n", l.name+":", l.kB)
	}
	p.WriteString("HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\n" +
		"HugePages_Surp:        0\nHugepagesize:       2048 kB\nHugetlb:               0 kB\n")
}

func vmstat(r *request, p *printer) {
	m := r.kernel.Machine()
	p.f("nr_free_pages %d\nnr_anon_pages %d\nnr_file_pages %d\nnr_shmem %d\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\n",
		m.FreeBytes/pageSize, m.AnonBytes/pageSize, m.CacheBytes/pageSize, m.SharedBytes/pageSize)
}

const pageSize = 4096

// mountEscapes are the characters that the mount tables print in octal.
var mountEscapes = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, "#", `\043`)

func mounts(r *request, p *printer) {
	for _, m := range r.fs.Mounts() {
		p.f("%s %s %s %s 0 0\n", m.Source, mountEscapes.Replace(m.Path), m.Super.Type, m.Options)
	}
}

// firstMount is the number of the first mount in mountinfo.
const firstMount = 20

func mountinfo(r *request, p *printer) {
	all := r.fs.Mounts()
	for i, m := range all {
		parent := firstMount - 1
		if i > 0 {
			parent = firstMount + mountAbove(all, i)
		}
		p.f("%d %d %d:%d / %s %s - %s %s rw\n", firstMount+i, parent, unix.Major(m.Super.Dev), unix.Minor(m.Super.Dev),
			mountEscapes.Replace(m.Path), m.Options, m.Super.Type, m.Source)
	}
}

// mountAbove is the index of the mount that mount i stands in.
func mountAbove(all []vfs.MountInfo, i int) int {
	best := 0
	for j, m := range all {
		if j != i && strings.HasPrefix(all[i].Path, strings.TrimSuffix(m.Path, "/")+"/") && len(m.Path) > len(all[best].Path) {
			best = j
		}
	}
	return best
}
