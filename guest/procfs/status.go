package procfs

import (
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
)

// stateNames are the words of /proc/PID/status for states.
var stateNames = map[byte]string{
	'R': "R (running)", 'S': "S (sleeping)", 'D': "D (disk sleep)", 'T': "T (stopped)",
	't': "t (tracing stop)", 'Z': "Z (zombie)", 'X': "X (dead)", 'I': "I (idle)",
}

// escapeName prints a thread's name as status does.
var escapeName = strings.NewReplacer("\n", `\n`, `\`, `\\`)

func printStatus(r *request, s *Status, p *textPrinter) {
	m := r.kernel.Machine()
	id := r.process().ID()
	p.printf("Name:\t%s\nUmask:\t%04o\nState:\t%s\nTgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\nTracerPid:\t%d\n",
		escapeName.Replace(s.Name), s.Umask, stateNames[s.State], id, r.thread, s.Parent, s.Tracer)
	p.printf("Uid:\t%d\t%d\t%d\t%d\n", s.UID[0], s.UID[1], s.UID[2], s.UID[3])
	p.printf("Gid:\t%d\t%d\t%d\t%d\n", s.GID[0], s.GID[1], s.GID[2], s.GID[3])
	p.printf("FDSize:\t%d\nGroups:\t", s.DescriptorTable)
	for _, g := range s.Groups {
		p.printf("%d ", g)
	}
	p.printf("\nNStgid:\t%d\nNSpid:\t%d\nNSpgid:\t%d\nNSsid:\t%d\n", id, r.thread, s.Group, s.Session)
	if space := r.process().Space(); space != nil {
		printMemory(p, space)
	}
	p.printf("CoreDumping:\t0\nTHP_enabled:\t0\nThreads:\t%d\n", len(r.process().Threads()))
	p.printf("SigQ:\t%d/%d\n", s.QueuedSignals, r.process().Limit(unix.RLIMIT_SIGPENDING).Cur)
	p.printf("SigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016x\nSigIgn:\t%016x\nSigCgt:\t%016x\n",
		s.Pending, s.SharedPending, s.Blocked, s.Ignored, s.Caught)
	p.printf("CapInh:\t%016x\nCapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t%016x\nCapAmb:\t%016x\n",
		s.Inheritable, s.Permitted, s.Effective, s.Bounding, s.Ambient)
	p.printf("NoNewPrivs:\t%d\nSeccomp:\t%d\nSeccomp_filters:\t%d\n", boolBit(s.NoNewPrivs), s.Seccomp, s.SeccompFilters)
	p.printf("Speculation_Store_Bypass:\tnot vulnerable\nSpeculationIndirectBranch:\talways enabled\n")
	p.printf("Cpus_allowed:\t%s\nCpus_allowed_list:\t%s\n", maskHex(s.Affinity, m.Cores), maskList(s.Affinity))
	p.printf("Mems_allowed:\t00000000,00000001\nMems_allowed_list:\t0\n")
	p.printf("voluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", s.Voluntary, s.Involuntary)
}

func boolBit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// printMemory prints the lines of status about an address space.
func printMemory(p *textPrinter, space *mm.AddressSpace) {
	u := space.Usage()
	for _, l := range []struct {
		name  string
		pages uint64
	}{
		{"VmPeak", u.PeakTotal},
		{"VmSize", u.Total},
		{"VmLck", u.Locked},
		{"VmPin", 0},
		{"VmHWM", u.PeakRes},
		{"VmRSS", u.Resident},
		{"RssAnon", u.Anon},
		{"RssFile", u.OfFile},
		{"RssShmem", u.OfShm},
		{"VmData", u.Data},
		{"VmStk", u.Stack},
		{"VmExe", textPages(space)},
		{"VmLib", u.Exec - min(u.Exec, textPages(space))},
		{"VmPTE", u.Tables},
		{"VmSwap", 0},
		{"HugetlbPages", 0},
	} {
		p.printf("%s:\t%8d kB\n", l.name, l.pages*(pageSize/1024))
	}
}

// textPages is the size of the program's own code.
func textPages(space *mm.AddressSpace) uint64 {
	l := &space.Layout
	return (uint64(l.EndCode)+pageSize-1)/pageSize - uint64(l.StartCode)/pageSize
}

func statmText(r *request) ([]byte, unix.Errno) {
	p := r.process()
	if p == nil {
		return nil, unix.ESRCH
	}
	if p.Space() == nil {
		return []byte("0 0 0 0 0 0 0\n"), 0
	}
	u := p.Space().Usage()
	return fmt.Appendf(nil, "%d %d %d %d 0 %d 0\n", u.Total, u.Resident, u.OfFile+u.OfShm, textPages(p.Space()), u.Data+u.Stack), 0
}

// printProcessStat is the 52 fields of /proc/PID/stat, see proc(5).
func printProcessStat(r *request, s *Status, p *textPrinter) {
	process := r.process()
	p.printf("%d (%s) %c %d %d %d %d %d %d %d 0 %d 0 ", r.thread, s.Name, s.State, s.Parent, s.Group, s.Session,
		s.Terminal, s.Foreground, 0x400000, s.MinorFaults, s.MajorFaults)
	p.printf("%d %d %d %d %d %d %d 0 %d ", toTicks(s.UserNS), toTicks(s.SystemNS), toTicks(s.ChildUserNS), toTicks(s.ChildSysNS),
		s.Priority-100, s.Nice, len(process.Threads()), toTicks(s.StartNS))
	var u mm.Usage
	var l mm.Layout
	if space := process.Space(); space != nil {
		u, l = space.Usage(), space.Layout
	}
	p.printf("%d %d %d %d %d %d 0 0 ", u.Total*pageSize, u.Resident, process.Limit(unix.RLIMIT_RSS).Cur, l.StartCode, l.EndCode, l.StartStack)
	p.printf("%d %d %d %d %d 0 0 %d %d %d %d 0 0 0 ", s.Pending&math.MaxInt32, s.Blocked&math.MaxInt32, s.Ignored&math.MaxInt32,
		s.Caught&math.MaxInt32, boolBit(s.Waits != ""), s.ExitSignal, s.Core, s.RealtimePriority, s.Policy)
	p.printf("%d %d %d %d %d %d %d %d\n", l.StartData, l.EndData, l.StartBrk, l.ArgStart, l.ArgEnd, l.EnvStart, l.EnvEnd, s.ExitStatus)
}

func printIOCounts(_ *request, s *Status, p *textPrinter) {
	p.printf("rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n",
		s.ReadBytes, s.WrittenBytes, s.ReadCalls, s.WriteCalls)
}

func printSched(r *request, s *Status, p *textPrinter) {
	p.printf("%s (%d, #threads: %d)\n%s\n", s.Name, r.thread, len(r.process().Threads()), strings.Repeat("-", 67))
	line := func(name string, n uint64) { p.printf("%-45s:%21d\n", name, n) }
	ran := s.UserNS + s.SystemNS
	p.printf("%-45s:%14d.%06d\n", "se.sum_exec_runtime", ran/1_000_000, ran%1_000_000)
	line("nr_switches", s.Voluntary+s.Involuntary)
	line("nr_voluntary_switches", s.Voluntary)
	line("nr_involuntary_switches", s.Involuntary)
	line("policy", uint64(s.Policy))
	p.printf("%-45s:%21d\n", "prio", s.Priority)
}

func printSchedStat(_ *request, s *Status, p *textPrinter) {
	p.printf("%d 0 %d\n", s.UserNS+s.SystemNS, s.Voluntary+s.Involuntary)
}

// printSyscall is the call that a thread is in, with its registers.
func printSyscall(_ *request, s *Status, p *textPrinter) {
	switch {
	case s.State == 'R':
		p.printf("running\n")
		return
	case s.State == 'Z':
		return
	}
	p.printf("%d ", s.Call)
	if s.Call >= 0 {
		for _, a := range s.CallArgs {
			p.printf("%#x ", a)
		}
	}
	p.printf("%#x %#x\n", s.SP, s.PC)
}

func printWaitFunction(_ *request, s *Status, p *textPrinter) {
	if s.Waits == "" {
		p.WriteByte('0')
		return
	}
	p.WriteString(s.Waits)
}

// ofSpace is the text of a file about an address space. It is empty for a process that
// has none: a zombie or a kernel thread.
func ofSpace(text func(*mm.AddressSpace) []byte) func(*request) ([]byte, unix.Errno) {
	return func(r *request) ([]byte, unix.Errno) {
		p := r.process()
		if p == nil {
			return nil, unix.ESRCH
		}
		if p.Space() == nil {
			return nil, 0
		}
		return text(p.Space()), 0
	}
}

func spaceMaps(s *mm.AddressSpace) []byte  { return []byte(s.Maps()) }
func spaceSmaps(s *mm.AddressSpace) []byte { return []byte(s.Smaps()) }
