package kernel

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/procfs"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Proc is the view of the kernel that /proc and /sys show.
func (k *Kernel) Proc() procfs.Kernel { return &procView{k} }

type procView struct{ k *Kernel }

func (v *procView) CPUID(leaf, subleaf uint32) [4]uint32 { return v.k.cpu.CPUID(leaf, subleaf) }

// Sockets implements procfs.Kernel.
func (v *procView) Sockets(family, kind int) (list []procfs.Socket) {
	var found []sock.Status
	switch {
	case family == unix.AF_UNIX:
		found = v.unixSockets()
	case kind == unix.SOCK_STREAM:
		found = v.k.net.TCP(family)
	default:
		found = v.k.net.UDP(family)
	}
	for i := range found {
		x := &found[i]
		list = append(list, procfs.Socket{
			Type: x.Type, State: x.State, Local: endpointOf(&x.Local), Remote: endpointOf(&x.Remote), Received: x.Received,
			Remaining: x.Remaining, UID: x.UID, Inode: x.Inode, Listens: x.Listens,
		})
	}
	return list
}

func endpointOf(a *sock.Addr) procfs.Endpoint {
	return procfs.Endpoint{IP: a.IP, Port: a.Port, Name: a.Name}
}

// unixSockets lists the UNIX sockets that have descriptors, by inode.
func (v *procView) unixSockets() []sock.Status {
	found := map[uint64]sock.Status{}
	for _, pid := range v.Processes() {
		p := v.Process(pid)
		for _, fd := range p.Files() {
			f, _ := p.File(fd)
			if s, ok := f.Impl.(*socketFile); ok && s.IsUnix() {
				x := s.Status()
				found[x.Inode] = x
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b sock.Status) int { return cmp.Compare(a.Inode, b.Inode) })
}

func (v *procView) Machine() procfs.Machine {
	k := v.k
	used := k.ram.Used() * arch.PageSize
	m := procfs.Machine{
		Cores: k.config.Cores, KHz: uint64(k.costs.MHz) * 1000,
		MemoryBytes: k.ram.Limit() * arch.PageSize, FreeBytes: k.ram.Limit()*arch.PageSize - used, AnonBytes: used,
		Hostname: k.hostname, Domainname: "(none)", Release: Release, Version: Version,
		BootNS: k.realtimeBase() - bootNS, UptimeNS: k.uptime(), Forks: uint64(k.lastID), Threads: k.tasks.Len(),
		LastID: int32(k.lastID), MaxThreads: maxTasks, BootID: k.bootID,
	}
	for _, c := range k.cores {
		user, system := k.cyclesToNS(c.user), k.cyclesToNS(c.kernel)
		m.Times = append(m.Times, procfs.CoreTimes{UserNS: user, SystemNS: system, IdleNS: max(0, k.uptime()-user-system)})
	}
	for _, t := range k.tasks.All() {
		switch t.state {
		case running:
			m.Running++
		case blocked:
			m.Blocked++
		}
	}
	return m
}

func (v *procView) PtraceScope() int { return v.k.ptraceScope }

func (v *procView) SetPtraceScope(scope int) { v.k.ptraceScope = scope }

func (v *procView) Processes() []int32 {
	var ids []int32
	for _, p := range v.k.sortedProcesses() {
		ids = append(ids, p.pid)
	}
	return ids
}

func (v *procView) Process(id int32) procfs.Process {
	if p := v.k.processes[id]; p != nil {
		return procProcess{p}
	}
	if t := v.k.findTask(id); t != nil {
		return procProcess{t.proc}
	}
	return nil
}

type procProcess struct{ p *Process }

func (v procProcess) ID() int32 { return v.p.pid }

func (v procProcess) Threads() []int32 {
	if v.p.status.zombie {
		return []int32{v.p.pid}
	}
	var ids []int32
	for _, t := range slices.Concat(v.p.threads, v.p.zombies) {
		ids = append(ids, int32(t.id))
	}
	slices.Sort(ids)
	return ids
}

// thread finds a live thread; 0 means the main one, even if it has ended.
func (v procProcess) thread(id int32) *Task {
	for _, t := range v.p.threads {
		if id == 0 || int32(t.id) == id {
			return t
		}
	}
	return nil
}

func (v procProcess) Status(id int32) (procfs.Status, bool) {
	p, k := v.p, v.p.k
	t := v.thread(id)
	if t == nil && !p.status.zombie {
		return procfs.Status{}, false
	}
	s := procfs.Status{
		Name: p.name, State: 'Z', Priority: 120, Group: p.group, Session: p.session,
		Umask: p.context.umask, SharedPending: uint64(p.signals.set), QueuedSignals: len(p.signals.list),
		ExitSignal: p.exitSignal, ExitStatus: int(p.status.waitWord()), StartNS: p.started + bootNS,
		ChildUserNS: k.cyclesToNS(p.childUser), ChildSysNS: k.cyclesToNS(p.childKernel),
	}
	s.Parent = p.parentID()
	if s.Foreground = -1; p.terminal != nil {
		s.Terminal, s.Foreground = terminalDevice(p.terminal), p.terminal.Group
	}
	s.Dumpable = p.dumpable == 1
	addCred(&s, p.cred())
	for n := 1; n <= lastSignal; n++ {
		switch p.actions.list[n].Handler {
		case sigDfl:
		case sigIgn:
			s.Ignored |= uint64(sigbit(n))
		default:
			s.Caught |= uint64(sigbit(n))
		}
	}
	user, system := p.coreTimes()
	if t != nil {
		v.addThread(&s, t)
		if id != 0 {
			user, system = t.userTime, t.kernelTime
		}
	}
	if p.leader.state == dead && (id == 0 || id == p.pid) {
		s.State, s.Name, s.Waits = 'Z', p.name, ""
	}
	s.UserNS, s.SystemNS = k.cyclesToNS(user), k.cyclesToNS(system)
	if p.files != nil {
		s.DescriptorTable = len(p.files.list)
	}
	return s, true
}

func addCred(s *procfs.Status, c *vfs.Cred) {
	s.UID, s.GID = [4]uint32{c.UID, c.EUID, c.SUID, c.FSUID}, [4]uint32{c.GID, c.EGID, c.SGID, c.FSGID}
	s.Groups = c.Groups
	s.Inheritable, s.Permitted, s.Effective = uint64(c.Inheritable), uint64(c.Permitted), uint64(c.Effective)
	s.Bounding, s.Ambient = uint64(c.Bounding), uint64(c.Ambient)
}

// addThread adds the fields of a live thread.
func (v procProcess) addThread(s *procfs.Status, t *Task) {
	s.Name = t.name
	addCred(s, &t.cred)
	s.Pending, s.Blocked = uint64(t.signals.set), uint64(t.mask)
	s.QueuedSignals += len(t.signals.list)
	s.NoNewPrivs = t.noNewPrivs
	s.Personality = t.personality
	if s.Seccomp = int(t.seccomp.mode); t.seccomp.filters != nil {
		s.SeccompFilters = t.seccomp.filters.count
	}
	s.Nice, s.Policy, s.RealtimePriority = int(t.schedule.nice), int(t.schedule.policy), int(t.schedule.priority)
	s.Priority = int(t.schedule.kernelPriority(t.rank()))
	s.Core = int32(max(0, t.k.sched.Core(t.id)))
	s.Voluntary = t.waits
	s.StartNS = t.started + bootNS
	if s.Affinity = t.affinity; s.Affinity == 0 {
		s.Affinity = t.k.allCores()
	}
	switch t.state {
	case running:
		s.State = 'R'
	case blocked:
		s.State = 'S'
		s.Waits = "do_" + linux.Name(t.call.number)
	case stopped:
		s.State, s.Waits = 'T', "do_signal_stop"
	case traced:
		s.State, s.Waits = 't', "ptrace_stop"
	}
	if t.trace != nil {
		s.Tracer = int32(t.trace.tracer.id)
	}
	if t.state != running {
		s.Call, s.CallArgs = int64(t.origRAX), t.call.args
		s.SP, s.PC = t.regs.GPR[arch.RSP], t.regs.RIP
	}
}

// Space is nil for processes outside of the program, too.
func (v procProcess) Space() *mm.AddressSpace {
	if v.p.status.zombie {
		return nil
	}
	return v.p.space
}

func (v procProcess) Args() []string { return v.p.args }

func (v procProcess) Exe() *vfs.Dentry {
	if v.p.binary == nil {
		return nil
	}
	return v.p.binary.Dentry()
}

func (v procProcess) Cwd() *vfs.Dentry { return v.liveEntry(v.p.context.cwd) }

func (v procProcess) Root() *vfs.Dentry { return v.liveEntry(v.p.context.root) }

func (v procProcess) liveEntry(d *vfs.Dentry) *vfs.Dentry {
	if v.p.status.zombie {
		return nil
	}
	return d
}

func (v procProcess) Files() []int32 {
	var list []int32
	if v.p.files != nil {
		for fd, e := range v.p.files.list {
			if e.file != nil {
				list = append(list, int32(fd))
			}
		}
	}
	return list
}

func (v procProcess) File(fd int32) (*vfs.File, bool) {
	if v.p.files == nil || fd < 0 {
		return nil, false
	}
	e := v.p.files.openEntry(uint64(fd))
	if e == nil {
		return nil, false
	}
	return e.file, e.cloexec
}

func (v procProcess) Limit(resource int) unix.Rlimit { return v.p.limits[resource] }

func (v procProcess) SetName(thread int32, name string) {
	if t := v.thread(thread); t != nil {
		t.name = name
	}
}

func (v procProcess) MayTrace(c *vfs.Ctx) bool {
	t := v.p.k.tasks.At(arch.ThreadID(c.TID))
	return t != nil && v.p.k.current == t && t.mayTrace(v.p, true)
}

func (v procProcess) MayExamine(c *vfs.Ctx) bool {
	return c.PID == v.p.pid || v.p.mayExamine(&c.Cred, true)
}

func (v procProcess) OOMScoreAdj() int { return v.p.oomScore }

func (v procProcess) SetOOMScoreAdj(score int) { v.p.oomScore = score }
