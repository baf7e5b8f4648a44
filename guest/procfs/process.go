package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// processDir is /proc/PID.
var processDir = &entry{
	entries: append(threadFiles(),
		netDir,
		&entry{name: "task", dynamic: &dynamic{entry: threadDir, list: threadNumbers, about: threadTarget}},
	),
}

// threadDir is /proc/PID/task/TID.
var threadDir = &entry{entries: threadFiles()}

// threadFiles are the files that processes and threads both have. They are made
// anew for each of the two, so that their inode numbers differ.
func threadFiles() []*entry {
	return append(fdDirs(), []*entry{
		privateFile(&entry{name: "auxv", mode: 0o400, text: ofSpace(auxiliaryVector)}),
		constantFile("cgroup", "0::/\n"),
		{name: "cmdline", text: commandLine},
		{name: "comm", mode: 0o644, text: threadName, store: setThreadName},
		{name: "coredump_filter", text: oneLineText("00000033")},
		constantFile("cpuset", "/\n"),
		privateFile(&entry{name: "cwd", follow: ofProcess(Process.Cwd)}),
		privateFile(&entry{name: "environ", mode: 0o400, text: ofSpace(environmentBytes)}),
		privateFile(&entry{name: "exe", follow: ofProcess(Process.Exe)}),
		constantFile("gid_map", identityMap),
		privateFile(statusFile("io", printIOCounts)),
		processFile("limits", printLimits),
		constantFile("loginuid", "4294967295"),
		privateFile(&entry{name: "maps", text: ofSpace(spaceMaps)}),
		privateFile(&entry{name: "mem", mode: 0o600, open: openMemory}),
		printedFile("mountinfo", printMountInfo),
		printedFile("mounts", printMounts),
		{name: "oom_score", text: oneLineText("666")},
		{name: "oom_score_adj", mode: 0o644, text: oomScoreAdj, store: setOOMScoreAdj},
		privateFile(withMode(0o400, statusFile("personality", printPersonality))),
		privateFile(&entry{name: "root", follow: ofProcess(Process.Root)}),
		statusFile("sched", printSched),
		statusFile("schedstat", printSchedStat),
		constantFile("sessionid", "4294967295"),
		constantFile("setgroups", "allow\n"),
		privateFile(&entry{name: "smaps", text: ofSpace(spaceSmaps)}),
		statusFile("stat", printProcessStat),
		{name: "statm", text: statmText},
		statusFile("status", printStatus),
		privateFile(withMode(0o400, statusFile("syscall", printSyscall))),
		constantFile("timerslack_ns", "50000\n"),
		constantFile("uid_map", identityMap),
		statusFile("wchan", printWaitFunction),
	}...)
}

// identityMap maps user ids to themselves.
const identityMap = "         0          0 4294967295\n"

func privateFile(e *entry) *entry {
	e.private = true
	return e
}

func withMode(mode uint32, e *entry) *entry {
	e.mode = mode
	return e
}

func printPersonality(_ *request, s *Status, p *textPrinter) { p.printf("%08x\n", s.Personality) }

func oneLineText(text string) func(*request) ([]byte, unix.Errno) {
	return func(*request) ([]byte, unix.Errno) { return []byte(text + "\n"), 0 }
}

// statusFile makes a file from a thread's status, or the whole process's in
// the process's folder.
func statusFile(name string, print func(r *request, s *Status, p *textPrinter)) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) {
		s, ok := r.threadStatus()
		if !ok {
			return nil, unix.ESRCH
		}
		var p textPrinter
		print(r, &s, &p)
		return p.Bytes(), 0
	}}
}

// threadStatus is the state of the thread that the file is about.
func (r *request) threadStatus() (Status, bool) {
	p := r.process()
	if p == nil {
		return Status{}, false
	}
	if r.isWholeProcess() {
		return p.Status(0)
	}
	return p.Status(r.thread)
}

// isWholeProcess reports whether the file is about the process rather than one thread.
func (r *request) isWholeProcess() bool { return r.fd != inTask && r.thread == r.target.process }

// inTask marks targets below a task folder, where a process's own id means its
// main thread.
const inTask = -1

// processFile makes a file from a process.
func processFile(name string, print func(p Process, out *textPrinter)) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) {
		p := r.process()
		if p == nil {
			return nil, unix.ESRCH
		}
		var out textPrinter
		print(p, &out)
		return out.Bytes(), 0
	}}
}

// ofProcess makes a link's destination from a method of Process.
func ofProcess(find func(Process) *vfs.Dentry) func(*request) *vfs.Dentry {
	return func(r *request) *vfs.Dentry {
		if p := r.process(); p != nil {
			return find(p)
		}
		return nil
	}
}

func threadNumbers(r *request) []int32 {
	if p := r.process(); p != nil {
		return p.Threads()
	}
	return nil
}

func threadTarget(r *request, n int32) (target, bool) {
	p := r.process()
	if p == nil {
		return target{}, false
	}
	_, ok := p.Status(n)
	return target{process: r.target.process, thread: n, fd: inTask}, ok && n > 0
}

// readUser reads a range of memory, as far as it can be read.
func readUser(s *mm.AddressSpace, start, end arch.Addr) []byte {
	if end <= start {
		return nil
	}
	const most = 1 << 21 // more than execve accepts
	buf := make([]byte, min(uint64(end-start), most))
	n, _ := s.CopyInPart(start, buf)
	return buf[:n]
}

// commandLine is empty for a zombie.
func commandLine(r *request) ([]byte, unix.Errno) {
	p := r.process()
	if s, ok := r.threadStatus(); !ok || p.Space() != nil || s.State == 'Z' {
		return ofSpace(argumentBytes)(r)
	}
	var b []byte
	for _, arg := range p.Args() {
		b = append(append(b, arg...), 0)
	}
	return b, 0
}

func argumentBytes(s *mm.AddressSpace) []byte { return readUser(s, s.Layout.ArgStart, s.Layout.ArgEnd) }
func environmentBytes(s *mm.AddressSpace) []byte {
	return readUser(s, s.Layout.EnvStart, s.Layout.EnvEnd)
}
func auxiliaryVector(s *mm.AddressSpace) []byte { return bytes.Clone(s.Layout.Auxv) }

func threadName(r *request) ([]byte, unix.Errno) {
	s, ok := r.threadStatus()
	if !ok {
		return nil, unix.ESRCH
	}
	return []byte(s.Name + "\n"), 0
}

// maxComm is the longest name of a thread.
const maxComm = 15

func setThreadName(r *request, p []byte) unix.Errno {
	process := r.process()
	if process == nil {
		return unix.ESRCH
	}
	if r.c.PID != r.target.process {
		return unix.EINVAL
	}
	name, _, _ := strings.Cut(string(p[:min(len(p), maxComm)]), "\x00")
	process.SetName(r.thread, strings.TrimSuffix(name, "\n"))
	return 0
}

func oomScoreAdj(r *request) ([]byte, unix.Errno) {
	p := r.process()
	if p == nil {
		return nil, unix.ESRCH
	}
	return fmt.Appendln(nil, p.OOMScoreAdj()), 0
}

func setOOMScoreAdj(r *request, b []byte) unix.Errno {
	p := r.process()
	if p == nil {
		return unix.ESRCH
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	switch {
	case err != nil, n < -1000, n > 1000:
		return unix.EINVAL
	case n < p.OOMScoreAdj() && !r.c.Cred.Can(vfs.CapSysResource):
		return unix.EACCES
	}
	p.SetOOMScoreAdj(n)
	return 0
}

// limitNames are the lines of /proc/PID/limits by resource.
var limitNames = [...]struct{ name, unit string }{
	unix.RLIMIT_CPU:        {"Max cpu time", "seconds"},
	unix.RLIMIT_FSIZE:      {"Max file size", "bytes"},
	unix.RLIMIT_DATA:       {"Max data size", "bytes"},
	unix.RLIMIT_STACK:      {"Max stack size", "bytes"},
	unix.RLIMIT_CORE:       {"Max core file size", "bytes"},
	unix.RLIMIT_RSS:        {"Max resident set", "bytes"},
	unix.RLIMIT_NPROC:      {"Max processes", "processes"},
	unix.RLIMIT_NOFILE:     {"Max open files", "files"},
	unix.RLIMIT_MEMLOCK:    {"Max locked memory", "bytes"},
	unix.RLIMIT_AS:         {"Max address space", "bytes"},
	unix.RLIMIT_LOCKS:      {"Max file locks", "locks"},
	unix.RLIMIT_SIGPENDING: {"Max pending signals", "signals"},
	unix.RLIMIT_MSGQUEUE:   {"Max msgqueue size", "bytes"},
	unix.RLIMIT_NICE:       {"Max nice priority", ""},
	unix.RLIMIT_RTPRIO:     {"Max realtime priority", ""},
	unix.RLIMIT_RTTIME:     {"Max realtime timeout", "us"},
}

func printLimits(p Process, out *textPrinter) {
	value := func(n uint64) string {
		if n == unix.RLIM_INFINITY {
			return "unlimited"
		}
		return strconv.FormatUint(n, 10)
	}
	out.printf("%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units")
	for resource, l := range limitNames {
		now := p.Limit(resource)
		out.printf("%-25s %-20s %-20s ", l.name, value(now.Cur), value(now.Max))
		if l.unit != "" {
			out.printf("%-10s", l.unit)
		}
		out.WriteByte('\n')
	}
}
