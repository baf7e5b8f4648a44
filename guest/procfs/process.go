package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// processDir is /proc/PID.
var processDir = &entry{
	entries: append(threadFiles(),
		netDir,
		&entry{name: "task", dynamic: &dynamic{entry: threadDir, list: threads, about: thread}},
	),
}

// threadDir is /proc/PID/task/TID.
var threadDir = &entry{entries: threadFiles()}

// threadFiles are the files that processes and threads both have. They are made
// anew for each of the two, so that their inode numbers differ.
func threadFiles() []*entry {
	return append(fdDirs(), []*entry{
		private(&entry{name: "auxv", mode: 0o400, text: ofSpace(auxv)}),
		fixed("cgroup", "0::/\n"),
		{name: "cmdline", text: commandLine},
		{name: "comm", mode: 0o644, text: comm, store: setComm},
		{name: "coredump_filter", text: oneLine("00000033")},
		fixed("cpuset", "/\n"),
		private(&entry{name: "cwd", follow: ofProcess(Process.Cwd)}),
		private(&entry{name: "environ", mode: 0o400, text: ofSpace(environ)}),
		private(&entry{name: "exe", follow: ofProcess(Process.Exe)}),
		fixed("gid_map", idMap),
		private(printedStatus("io", ioCounts)),
		printedProcess("limits", limits),
		fixed("loginuid", "4294967295"),
		private(&entry{name: "maps", text: ofSpace(spaceMaps)}),
		private(&entry{name: "mem", mode: 0o600, open: openMemory}),
		printed("mountinfo", mountinfo),
		printed("mounts", mounts),
		{name: "oom_score", text: oneLine("666")},
		{name: "oom_score_adj", mode: 0o644, text: oomScoreAdj, store: setOOMScoreAdj},
		private(withMode(0o400, printedStatus("personality", personality))),
		private(&entry{name: "root", follow: ofProcess(Process.Root)}),
		printedStatus("sched", sched),
		printedStatus("schedstat", schedstat),
		fixed("sessionid", "4294967295"),
		fixed("setgroups", "allow\n"),
		private(&entry{name: "smaps", text: ofSpace(spaceSmaps)}),
		printedStatus("stat", processStat),
		{name: "statm", text: statm},
		printedStatus("status", status),
		private(withMode(0o400, printedStatus("syscall", syscallLine))),
		fixed("timerslack_ns", "50000\n"),
		fixed("uid_map", idMap),
		printedStatus("wchan", wchan),
	}...)
}

// idMap says that user ids mean themselves.
const idMap = "         0          0 4294967295\n"

func private(e *entry) *entry {
	e.private = true
	return e
}

func withMode(mode uint32, e *entry) *entry {
	e.mode = mode
	return e
}

func personality(_ *request, s *Status, p *printer) { p.f("%08x\n", s.Personality) }

func oneLine(text string) func(*request) ([]byte, unix.Errno) {
	return func(*request) ([]byte, unix.Errno) { return []byte(text + "\n"), 0 }
}

// printedStatus makes a file from a thread's status, or the whole process's in
// the process's folder.
func printedStatus(name string, print func(r *request, s *Status, p *printer)) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) {
		s, ok := r.status()
		if !ok {
			return nil, unix.ESRCH
		}
		var p printer
		print(r, &s, &p)
		return p.Bytes(), 0
	}}
}

// status tells of the thread that the file is about.
func (r *request) status() (Status, bool) {
	p := r.process()
	if p == nil {
		return Status{}, false
	}
	if r.whole() {
		return p.Status(0)
	}
	return p.Status(r.thread)
}

// whole tells whether the file is about the process rather than one thread.
func (r *request) whole() bool { return r.fd != inTask && r.thread == r.target.process }

// inTask marks targets below a task folder, where a process's own id means its
// main thread.
const inTask = -1

// printedProcess makes a file from a process.
func printedProcess(name string, print func(p Process, out *printer)) *entry {
	return &entry{name: name, text: func(r *request) ([]byte, unix.Errno) {
		p := r.process()
		if p == nil {
			return nil, unix.ESRCH
		}
		var out printer
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

func threads(r *request) []int32 {
	if p := r.process(); p != nil {
		return p.Threads()
	}
	return nil
}

func thread(r *request, n int32) (target, bool) {
	p := r.process()
	if p == nil {
		return target{}, false
	}
	_, ok := p.Status(n)
	return target{process: r.target.process, thread: n, fd: inTask}, ok && n > 0
}

// userBytes reads a range of memory, as far as it can be read.
func userBytes(s *mm.AddressSpace, start, end event.Addr) []byte {
	if end <= start {
		return nil
	}
	const most = 1 << 21 // more than execve takes
	buf := make([]byte, min(uint64(end-start), most))
	n, _ := s.CopyInPart(start, buf)
	return buf[:n]
}

// commandLine is empty for a zombie.
func commandLine(r *request) ([]byte, unix.Errno) {
	p := r.process()
	if s, ok := r.status(); !ok || p.Space() != nil || s.State == 'Z' {
		return ofSpace(cmdline)(r)
	}
	var b []byte
	for _, arg := range p.Args() {
		b = append(append(b, arg...), 0)
	}
	return b, 0
}

func cmdline(s *mm.AddressSpace) []byte { return userBytes(s, s.Layout.ArgStart, s.Layout.ArgEnd) }
func environ(s *mm.AddressSpace) []byte { return userBytes(s, s.Layout.EnvStart, s.Layout.EnvEnd) }
func auxv(s *mm.AddressSpace) []byte    { return bytes.Clone(s.Layout.Auxv) }

func comm(r *request) ([]byte, unix.Errno) {
	s, ok := r.status()
	if !ok {
		return nil, unix.ESRCH
	}
	return []byte(s.Name + "\n"), 0
}

// maxComm is the longest name of a thread.
const maxComm = 15

func setComm(r *request, p []byte) unix.Errno {
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

func limits(p Process, out *printer) {
	value := func(n uint64) string {
		if n == unix.RLIM_INFINITY {
			return "unlimited"
		}
		return strconv.FormatUint(n, 10)
	}
	out.f("%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units")
	for resource, l := range limitNames {
		now := p.Limit(resource)
		out.f("%-25s %-20s %-20s ", l.name, value(now.Cur), value(now.Max))
		if l.unit != "" {
			out.f("%-10s", l.unit)
		}
		out.WriteByte('\n')
	}
}
