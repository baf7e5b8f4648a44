package procfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// sysRoot is /sys. There are no control groups and no devices besides cores and
// the one memory node.
var sysRoot = folder("",
	folder("block"),
	folder("bus"),
	folder("class"),
	folder("devices", folder("system", cpuDir, nodeDir)),
	folder("fs"),
	folder("kernel", folder("mm",
		folder("hugepages"),
		folder("transparent_hugepage",
			fixed("defrag", "always defer defer+madvise madvise [never]\n"),
			fixed("enabled", "always madvise [never]\n"),
			fixed("shmem_enabled", "always within_size advise [never] deny force\n"),
		),
	)),
	folder("module"),
)

// cpuDir is /sys/devices/system/cpu.
var cpuDir = &entry{
	name: "cpu",
	entries: []*entry{
		number("kernel_max", func(*request) int64 { return 63 }),
		fixed("offline", "\n"),
		line("online", cores),
		line("possible", cores),
		line("present", cores),
	},
	dynamic: &dynamic{entry: coreDir, prefix: "cpu", list: coreNumbers, about: core},
}

func cores(r *request) string { return list(r.kernel.Machine().Cores) }

func coreNumbers(r *request) []int32 {
	var all []int32
	for i := range r.kernel.Machine().Cores {
		all = append(all, int32(i))
	}
	return all
}

func core(r *request, n int32) (target, bool) {
	return target{fd: n}, int(n) < r.kernel.Machine().Cores
}

// coreDir is /sys/devices/system/cpu/cpuN. All cores are in one package, each
// with one thread.
var coreDir = folder("",
	folder("cache",
		cacheDir("index0", 1, "Data"), cacheDir("index1", 1, "Instruction"),
		cacheDir("index2", 2, "Unified"), cacheDir("index3", 3, "Unified"),
	),
	folder("topology",
		number("cluster_id", func(*request) int64 { return 65535 }),
		line("core_cpus", ownMask), line("core_cpus_list", ownList),
		number("core_id", func(r *request) int64 { return int64(r.fd) }),
		line("core_siblings", allMask), line("core_siblings_list", cores),
		line("die_cpus", allMask), line("die_cpus_list", cores),
		number("die_id", func(*request) int64 { return 0 }),
		line("package_cpus", allMask), line("package_cpus_list", cores),
		number("physical_package_id", func(*request) int64 { return 0 }),
		line("thread_siblings", ownMask), line("thread_siblings_list", ownList),
	),
)

func ownMask(r *request) string { return maskHex(1<<r.fd, r.kernel.Machine().Cores) }
func ownList(r *request) string { return itoa(r.fd) }

func allMask(r *request) string {
	n := r.kernel.Machine().Cores
	return maskHex(allCores(n), n)
}

// cache is what CPUID says of a cache.
type cache struct{ kB, ways, line uint32 }

// wayCodes translates the associativity fields of leaf 80000006h (AMD's manual, volume
// 3, appendix E).
var wayCodes = map[uint32]uint32{1: 1, 2: 2, 4: 4, 6: 8, 8: 16, 10: 32, 11: 48, 12: 64, 13: 96, 14: 128}

func cacheOf(k Kernel, level int, kind string) cache {
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
	of := func(r *request) cache { return cacheOf(r.kernel, level, kind) }
	mask, cpus := ownMask, ownList
	if level == 3 {
		mask, cpus = allMask, cores
	}
	return folder(name,
		number("coherency_line_size", func(r *request) int64 { return int64(of(r).line) }),
		number("id", func(r *request) int64 {
			if level == 3 {
				return 0
			}
			return int64(r.fd)
		}),
		number("level", func(*request) int64 { return int64(level) }),
		number("number_of_sets", func(r *request) int64 { return int64(of(r).sets()) }),
		number("physical_line_partition", func(*request) int64 { return 1 }),
		line("shared_cpu_list", cpus),
		line("shared_cpu_map", mask),
		line("size", func(r *request) string { return fmt.Sprintf("%dK", of(r).kB) }),
		fixed("type", kind+"\n"),
		number("ways_of_associativity", func(r *request) int64 { return int64(of(r).ways) }),
	)
}

func (c cache) sets() uint32 {
	if c.ways == 0 || c.line == 0 {
		return 0
	}
	return c.kB * 1024 / c.ways / c.line
}

// nodeDir is /sys/devices/system/node: one node with all cores and memory.
var nodeDir = folder("node",
	fixed("has_cpu", "0\n"),
	fixed("has_memory", "0\n"),
	fixed("has_normal_memory", "0\n"),
	folder("node0",
		line("cpulist", cores),
		line("cpumap", allMask),
		fixed("distance", "10\n"),
		&entry{name: "meminfo", text: nodeMeminfo},
		fixed("numastat", "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n"),
	),
	fixed("online", "0\n"),
	fixed("possible", "0\n"),
)

func nodeMeminfo(r *request) ([]byte, unix.Errno) {
	m := r.kernel.Machine()
	var p printer
	p.f("Node 0 MemTotal:       %8d kB\nNode 0 MemFree:        %8d kB\nNode 0 MemUsed:        %8d kB\n",
		kB(m.MemoryBytes), kB(m.FreeBytes), kB(m.MemoryBytes-m.FreeBytes))
	return p.Bytes(), 0
}
