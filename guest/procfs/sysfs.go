package procfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// sysRoot is /sys. There are no control groups and no devices besides cores and
// the one memory node.
var sysRoot = fixedFolder("",
	fixedFolder("block"),
	fixedFolder("bus"),
	fixedFolder("class"),
	fixedFolder("devices", fixedFolder("system", cpuDir, nodeDir)),
	fixedFolder("fs"),
	fixedFolder("kernel", fixedFolder("mm",
		fixedFolder("hugepages"),
		fixedFolder("transparent_hugepage",
			constantFile("defrag", "always defer defer+madvise madvise [never]\n"),
			constantFile("enabled", "always madvise [never]\n"),
			constantFile("shmem_enabled", "always within_size advise [never] deny force\n"),
		),
	)),
	fixedFolder("module"),
)

// cpuDir is /sys/devices/system/cpu.
var cpuDir = &entry{
	name: "cpu",
	entries: []*entry{
		numberFile("kernel_max", func(*request) int64 { return 63 }),
		constantFile("offline", "\n"),
		lineFile("online", coresText),
		lineFile("possible", coresText),
		lineFile("present", coresText),
	},
	dynamic: &dynamic{entry: coreDir, prefix: "cpu", list: coreNumbers, about: coreTarget},
}

func coresText(r *request) string { return coreList(r.kernel.Machine().Cores) }

func coreNumbers(r *request) []int32 {
	var all []int32
	for i := range r.kernel.Machine().Cores {
		all = append(all, int32(i))
	}
	return all
}

func coreTarget(r *request, n int32) (target, bool) {
	return target{fd: n}, int(n) < r.kernel.Machine().Cores
}

// coreDir is /sys/devices/system/cpu/cpuN. All cores are in one package, each
// with one thread.
var coreDir = fixedFolder("",
	fixedFolder("cache",
		cacheDir("index0", 1, "Data"), cacheDir("index1", 1, "Instruction"),
		cacheDir("index2", 2, "Unified"), cacheDir("index3", 3, "Unified"),
	),
	fixedFolder("topology",
		numberFile("cluster_id", func(*request) int64 { return 65535 }),
		lineFile("core_cpus", ownMaskText), lineFile("core_cpus_list", ownListText),
		numberFile("core_id", func(r *request) int64 { return int64(r.fd) }),
		lineFile("core_siblings", allMaskText), lineFile("core_siblings_list", coresText),
		lineFile("die_cpus", allMaskText), lineFile("die_cpus_list", coresText),
		numberFile("die_id", func(*request) int64 { return 0 }),
		lineFile("package_cpus", allMaskText), lineFile("package_cpus_list", coresText),
		numberFile("physical_package_id", func(*request) int64 { return 0 }),
		lineFile("thread_siblings", ownMaskText), lineFile("thread_siblings_list", ownListText),
	),
)

func ownMaskText(r *request) string { return maskHex(1<<r.fd, r.kernel.Machine().Cores) }
func ownListText(r *request) string { return decimal(r.fd) }

func allMaskText(r *request) string {
	n := r.kernel.Machine().Cores
	return maskHex(allCores(n), n)
}

// cache is CPUID's description of a cache.
type cache struct{ kB, ways, line uint32 }

// wayCodes translates the associativity fields of leaf 80000006h (AMD's manual, volume
// 3, appendix E).
var wayCodes = map[uint32]uint32{1: 1, 2: 2, 4: 4, 6: 8, 8: 16, 10: 32, 11: 48, 12: 64, 13: 96, 14: 128}

func cacheFromCPUID(k Kernel, level int, kind string) cache {
	l1, l2 := k.CPUID(0x80000005, 0), k.CPUID(0x80000006, 0)
	switch {
	case level == 1 && kind == "Data":
		return cache{l1[2] >> 24, l1[2] >> 16 & 255, l1[2] & 255}
	case level == 1:
		return cache{l1[3] >> 24, l1[3] >> 16 & 255, l1[3] & 255}
	case level == 2:
		return cache{l2[2] >> 16, wayCodes[l2[2]>>12&15], l2[2] & 255}
	}
	return cache{l2[3] >> 18 * 512, wayCodes[l2[3]>>12&15], l2[3] & 255}
}

// cacheDir is a folder cache/indexN. Only the third level is shared.
func cacheDir(name string, level int, kind string) *entry {
	of := func(r *request) cache { return cacheFromCPUID(r.kernel, level, kind) }
	mask, cpus := ownMaskText, ownListText
	if level == 3 {
		mask, cpus = allMaskText, coresText
	}
	return fixedFolder(name,
		numberFile("coherency_line_size", func(r *request) int64 { return int64(of(r).line) }),
		numberFile("id", func(r *request) int64 {
			if level == 3 {
				return 0
			}
			return int64(r.fd)
		}),
		numberFile("level", func(*request) int64 { return int64(level) }),
		numberFile("number_of_sets", func(r *request) int64 { return int64(of(r).setCount()) }),
		numberFile("physical_line_partition", func(*request) int64 { return 1 }),
		lineFile("shared_cpu_list", cpus),
		lineFile("shared_cpu_map", mask),
		lineFile("size", func(r *request) string { return fmt.Sprintf("%dK", of(r).kB) }),
		constantFile("type", kind+"\n"),
		numberFile("ways_of_associativity", func(r *request) int64 { return int64(of(r).ways) }),
	)
}

func (c cache) setCount() uint32 {
	if c.ways == 0 || c.line == 0 {
		return 0
	}
	return c.kB * 1024 / c.ways / c.line
}

// nodeDir is /sys/devices/system/node: one node with all cores and memory.
var nodeDir = fixedFolder("node",
	constantFile("has_cpu", "0\n"),
	constantFile("has_memory", "0\n"),
	constantFile("has_normal_memory", "0\n"),
	fixedFolder("node0",
		lineFile("cpulist", coresText),
		lineFile("cpumap", allMaskText),
		constantFile("distance", "10\n"),
		&entry{name: "meminfo", text: nodeMeminfo},
		constantFile("numastat", "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n"),
	),
	constantFile("online", "0\n"),
	constantFile("possible", "0\n"),
)

func nodeMeminfo(r *request) ([]byte, unix.Errno) {
	m := r.kernel.Machine()
	var p textPrinter
	p.printf("Node 0 MemTotal:       %8d kB\nNode 0 MemFree:        %8d kB\nNode 0 MemUsed:        %8d kB\n",
		kibibytes(m.MemoryBytes), kibibytes(m.FreeBytes), kibibytes(m.MemoryBytes-m.FreeBytes))
	return p.Bytes(), 0
}
