package procfs

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// cpuBits names the bits of a CPUID register as /proc/cpuinfo does. Their order
// is that of the kernel's feature words.
type cpuBits struct {
	leaf     uint32
	register int // index in eax, ebx, ecx, edx
	names    map[uint]string
}

var cpuFlags = []cpuBits{
	{1, 3, map[uint]string{
		0: "fpu", 1: "vme", 2: "de", 3: "pse", 4: "tsc", 5: "msr", 6: "pae", 7: "mce", 8: "cx8", 9: "apic",
		11: "sep", 12: "mtrr", 13: "pge", 14: "mca", 15: "cmov", 16: "pat", 17: "pse36", 18: "pn", 19: "clflush",
		21: "dts", 22: "acpi", 23: "mmx", 24: "fxsr", 25: "sse", 26: "sse2", 27: "ss", 28: "ht", 29: "tm", 31: "pbe",
	}},
	{0x80000001, 3, map[uint]string{
		11: "syscall", 19: "mp", 20: "nx", 22: "mmxext", 25: "fxsr_opt", 26: "pdpe1gb", 27: "rdtscp", 29: "lm",
		30: "3dnowext", 31: "3dnow",
	}},
	{1, 2, map[uint]string{
		0: "pni", 1: "pclmulqdq", 2: "dtes64", 3: "monitor", 9: "ssse3", 12: "fma", 13: "cx16", 17: "pcid",
		19: "sse4_1", 20: "sse4_2", 21: "x2apic", 22: "movbe", 23: "popcnt", 24: "tsc_deadline_timer", 25: "aes",
		26: "xsave", 28: "avx", 29: "f16c", 30: "rdrand", 31: "hypervisor",
	}},
	{0x80000001, 2, map[uint]string{
		0: "lahf_lm", 1: "cmp_legacy", 2: "svm", 3: "extapic", 4: "cr8_legacy", 5: "abm", 6: "sse4a",
		7: "misalignsse", 8: "3dnowprefetch",
	}},
	{7, 1, map[uint]string{
		0: "fsgsbase", 3: "bmi1", 5: "avx2", 7: "smep", 8: "bmi2", 9: "erms", 18: "rdseed", 19: "adx", 20: "smap",
	}},
}

// cpuFlagsText lists the features that CPUID announces.
func cpuFlagsText(k Kernel) string {
	var names []string
	for _, w := range cpuFlags {
		bits := k.CPUID(w.leaf, 0)[w.register]
		for i := range uint(32) {
			if name := w.names[i]; name != "" && bits>>i&1 != 0 {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, " ")
}

// registerText is the bytes of CPUID registers as a text.
func registerText(regs ...uint32) string {
	var b []byte
	for _, r := range regs {
		b = binary.LittleEndian.AppendUint32(b, r)
	}
	return string(bytes.TrimRight(b, "\x00"))
}

// brandText is the processor's name.
func brandText(k Kernel) string {
	var regs []uint32
	for leaf := uint32(0x80000002); leaf <= 0x80000004; leaf++ {
		r := k.CPUID(leaf, 0)
		regs = append(regs, r[:]...)
	}
	return registerText(regs...)
}

// splitSignature splits leaf 1's EAX as the SDM says (volume 2, CPUID).
func splitSignature(eax uint32) (family, model, stepping uint32) {
	family, model, stepping = eax>>8&15, eax>>4&15, eax&15
	if family == 15 {
		family += eax >> 20 & 255
	}
	if family >= 6 {
		model |= eax >> 16 & 15 << 4
	}
	return family, model, stepping
}

func printCPUInfo(r *request, p *textPrinter) {
	m := r.kernel.Machine()
	top := r.kernel.CPUID(0, 0)
	family, model, stepping := splitSignature(r.kernel.CPUID(1, 0)[0])
	sizes := r.kernel.CPUID(0x80000008, 0)[0]
	for i := range m.Cores {
		p.printf("processor\t: %d\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: %s\nstepping\t: %d\n",
			i, registerText(top[1], top[3], top[2]), family, model, brandText(r.kernel), stepping)
		p.printf("cpu MHz\t\t: %d.%03d\ncache size\t: %d KB\n", m.KHz/1000, m.KHz%1000, r.kernel.CPUID(0x80000006, 0)[2]>>16)
		p.printf("physical id\t: 0\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\napicid\t\t: %d\ninitial apicid\t: %d\n",
			m.Cores, i, m.Cores, i, i)
		p.printf("fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: %d\nwp\t\t: yes\nflags\t\t: %s\nbugs\t\t:\n",
			top[0], cpuFlagsText(r.kernel))
		p.printf("bogomips\t: %d.%02d\nclflush size\t: 64\ncache_alignment\t: 64\n", m.KHz/500, m.KHz/5%100)
		p.printf("address sizes\t: %d bits physical, %d bits virtual\npower management:\n\n", sizes&255, sizes>>8&255)
	}
}
