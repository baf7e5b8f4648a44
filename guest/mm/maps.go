package mm

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// nameColumn is where names begin in the lines of /proc/PID/maps.
const nameColumn = 73

// vsyscallLine is the line that Linux prints for the page of legacy system calls, which
// is outside every address space.
const vsyscallLine = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"

// Maps is the content of /proc/PID/maps (proc(5)).
func (as *AddressSpace) Maps() string {
	var b strings.Builder
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		as.writeMapsLine(&b, as.vmas.at(p))
	}
	b.WriteString(vsyscallLine)
	return b.String()
}

func (as *AddressSpace) writeMapsLine(b *strings.Builder, v *VMA) {
	name, dev, inode := as.describeOrigin(v)
	start := b.Len()
	fmt.Fprintf(b, "%08x-%08x %s %08x %02x:%02x %d ", v.Start, v.End, v.rightsText(), v.fileOffset(),
		unix.Major(dev), unix.Minor(dev), inode)
	if name != "" {
		for b.Len() < start+nameColumn {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ReplaceAll(name, "\n", `\012`))
	}
	b.WriteByte('\n')
}

func (v *VMA) fileOffset() uint64 {
	if v.File == nil {
		return 0
	}
	return v.Offset
}

// rightsText is the second column of maps: rwx, and p or s.
func (v *VMA) rightsText() string {
	r := []byte("---p")
	for i, bit := range [...]int{unix.PROT_READ, unix.PROT_WRITE, unix.PROT_EXEC} {
		if v.Prot&bit != 0 {
			r[i] = "rwx"[i]
		}
	}
	if v.hasFlags(Shared) {
		r[3] = 's'
	}
	return string(r)
}

// describeOrigin returns the name, device and inode that are shown for v.
func (as *AddressSpace) describeOrigin(v *VMA) (name string, dev, inode uint64) {
	switch {
	case v.File != nil:
		return v.File.MapName()
	case v.Start < as.brk && v.End > as.Layout.StartBrk:
		return "[heap]", 0, 0
	case v.containsAddress(as.Layout.StartStack):
		return "[stack]", 0, 0
	}
	return "", 0, 0
}

func (v *VMA) containsAddress(va arch.Addr) bool { return v.Start <= va && va < v.End }

// Usage is the memory of an address space, in pages.
type Usage struct {
	Total, PeakTotal     uint64 // mapped: VmSize, VmPeak
	Data, Stack, Exec    uint64 // mapped, by kind: VmData, VmStk, and program text
	Locked               uint64 // VmLck
	Resident, PeakRes    uint64 // in memory: VmRSS, VmHWM
	Anon, OfFile, OfShm  uint64 // parts of Resident: RssAnon, RssFile, RssShmem
	Tables               uint64 // page tables: VmPTE
	ArgsAndEnv, Promised uint64 // strings of the program's start; writable private memory
}

// Usage counts memory; it visits every resident page.
func (as *AddressSpace) Usage() Usage {
	u := Usage{
		Total: as.total, PeakTotal: as.peak, Data: as.data, Stack: as.stack, Exec: as.exec, Locked: as.locked,
		Resident: as.Resident(), PeakRes: as.space.PeakUsed(),
		ArgsAndEnv: uint64(as.Layout.EnvEnd-as.Layout.ArgStart) / arch.PageSize,
	}
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		c := as.countResident(v)
		u.Anon += c.anon
		u.Tables += c.tables
		if v.hasFlags(Account) {
			u.Promised += v.pageCount()
		}
		if v.hasFlags(Shared) && v.Object.source == nil {
			u.OfShm += c.file
		} else {
			u.OfFile += c.file
		}
	}
	return u
}

// Resident is the number of pages in memory, the page of zeros not counted
// (VmRSS).
func (as *AddressSpace) Resident() uint64 { return as.space.Resident() - as.space.Zeros() }

// residentCounts are the resident pages of a mapping.
type residentCounts struct {
	file, fileDirty uint64 // the object's pages
	anon            uint64 // the mapping's own
	tables          uint64 // page table leaves that begin with one of its entries
}

func (as *AddressSpace) countResident(v *VMA) (c residentCounts) {
	last := arch.Addr(0)
	for _, m := range as.space.Mappings(v.Start, v.End) {
		if leaf := m.Addr/zeroAround + 1; leaf != last {
			last = leaf
			c.tables++
		}
		switch {
		case m.PTE.Page() == mem.ZeroPage:
		case v.Object != nil && v.Object.isPage(v.objectIndex(m.Addr), m.PTE.Page()):
			c.file++
			if v.Object.isDirty(v.objectIndex(m.Addr)) {
				c.fileDirty++
			}
		default:
			c.anon++
		}
	}
	return c
}

// Smaps is the content of /proc/PID/smaps (proc(5)). Memory counts as private if the
// mapping is, whether or not others map it.
func (as *AddressSpace) Smaps() string {
	var b strings.Builder
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		as.writeMapsLine(&b, v)
		as.writeSmapsEntry(&b, v)
	}
	return b.String()
}

func (as *AddressSpace) writeSmapsEntry(b *strings.Builder, v *VMA) {
	c := as.countResident(v)
	rss, clean := c.file+c.anon, c.file-c.fileDirty
	var sharedClean, sharedDirty, privateClean, privateDirty, locked uint64
	if v.hasFlags(Shared) {
		sharedClean, sharedDirty = clean, c.fileDirty
	} else {
		privateClean, privateDirty = clean, c.fileDirty+c.anon
	}
	if v.hasFlags(Locked) {
		locked = rss
	}
	for _, line := range [...]struct {
		name  string
		pages uint64
	}{
		{"Size", v.pageCount()},
		{"KernelPageSize", 1},
		{"MMUPageSize", 1},
		{"Rss", rss},
		{"Pss", rss},
		{"Pss_Dirty", c.fileDirty + c.anon},
		{"Shared_Clean", sharedClean},
		{"Shared_Dirty", sharedDirty},
		{"Private_Clean", privateClean},
		{"Private_Dirty", privateDirty},
		{"Referenced", rss},
		{"Anonymous", c.anon},
		{"LazyFree", 0},
		{"AnonHugePages", 0},
		{"ShmemPmdMapped", 0},
		{"FilePmdMapped", 0},
		{"Shared_Hugetlb", 0},
		{"Private_Hugetlb", 0},
		{"Swap", 0},
		{"SwapPss", 0},
		{"Locked", locked},
	} {
		fmt.Fprintf(b, "%-16s%8d kB\n", line.name+":", line.pages*arch.PageSize/1024)
	}
	fmt.Fprintf(b, "THPeligible:    0\nVmFlags: %s\n", v.vmFlagsText())
}

// vmFlagsText is the line VmFlags of smaps.
func (v *VMA) vmFlagsText() string {
	var b strings.Builder
	for _, f := range [...]struct {
		name string
		on   bool
	}{
		{"rd", v.Prot&unix.PROT_READ != 0},
		{"wr", v.Prot&unix.PROT_WRITE != 0},
		{"ex", v.Prot&unix.PROT_EXEC != 0},
		{"sh", v.hasFlags(Shared) && v.MayProt&unix.PROT_WRITE != 0},
		{"mr", v.MayProt&unix.PROT_READ != 0},
		{"mw", v.MayProt&unix.PROT_WRITE != 0},
		{"me", v.MayProt&unix.PROT_EXEC != 0},
		{"ms", v.hasFlags(Shared)},
		{"gd", v.hasFlags(GrowsDown)},
		{"lo", v.hasFlags(Locked)},
		{"dc", v.hasFlags(DontFork)},
		{"ac", v.hasFlags(Account)},
		{"nr", v.hasFlags(NoReserve)},
		{"wf", v.hasFlags(WipeOnFork)},
		{"dd", v.hasFlags(DontDump)},
	} {
		if f.on {
			b.WriteString(f.name)
			b.WriteByte(' ')
		}
	}
	return b.String()
}
