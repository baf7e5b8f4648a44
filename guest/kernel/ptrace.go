package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/bpf"
	"github.com/heddle-dmt/heddle/guest/ptrace"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Requests that package unix does not define or defines under names of other processors.
const (
	ptraceSysemu     = 31
	ptraceSysemuStep = 32
	ptraceArchPrctl  = 30
	ptraceCallInfo   = 0x420e
	ptraceGetFilter  = 0x420c
	ptraceMetadata   = 0x420d
)

func sysPtrace(t *Task, a [6]uint64) (uint64, unix.Errno) {
	request := a[0]
	if request == unix.PTRACE_TRACEME {
		return 0, t.traceMe()
	}
	c := t.k.tasks.At(arch.ThreadID(int32(a[1])))
	if c == nil {
		return 0, t.missingTracee(request, int32(a[1]))
	}
	switch request {
	case unix.PTRACE_ATTACH:
		return 0, t.traceOther(c, false, 0, 0)
	case unix.PTRACE_SEIZE:
		return 0, t.traceOther(c, true, a[2], a[3])
	}
	anyState := request == unix.PTRACE_KILL || request == unix.PTRACE_INTERRUPT
	if c.trace == nil || c.trace.tracer != t || !anyState && (c.state != traced || c.stop.listens || c.killPending()) {
		return 0, unix.ESRCH
	}
	return t.ptrace(c, request, a[2], a[3])
}

// missingTracee is the error of a request about a thread that is no tracee or has ended.
func (t *Task) missingTracee(request uint64, id int32) unix.Errno {
	if p := t.k.processes[id]; p != nil && (request == unix.PTRACE_ATTACH || request == unix.PTRACE_SEIZE) {
		return unix.EPERM
	}
	return unix.ESRCH
}

// traceMe is PTRACE_TRACEME.
func (t *Task) traceMe() unix.Errno {
	if t.trace != nil {
		return unix.EPERM
	}
	if !t.k.mayBeTraced(t.proc.forker) {
		return unix.EPERM
	}
	t.attachTracer(t.proc.forker, false, 0)
	return 0
}

// The values of /proc/sys/kernel/yama/ptrace_scope.
const (
	scopeClassic = iota
	scopeRestricted
	scopeAdmin
	scopeNone
)

// mayBeTraced applies ptrace_scope to PTRACE_TRACEME.
func (k *Kernel) mayBeTraced(parent *Task) bool {
	switch k.ptraceScope {
	case scopeAdmin:
		return parent.cred.Can(vfs.CapSysPtrace)
	case scopeNone:
		return false
	}
	return true
}

// mayTrace reports whether t may trace a process or access its memory (PTRACE_MODE_ATTACH); for
// byFile see mayExamine.
func (t *Task) mayTrace(p *Process, byFile bool) bool {
	if p == t.proc {
		return true
	}
	if !p.mayExamine(&t.cred, byFile) {
		return false
	}
	switch t.k.ptraceScope {
	case scopeRestricted:
		return t.cred.Can(vfs.CapSysPtrace) || p.descendsFrom(t.proc) || p.acceptsTracer(t.proc)
	case scopeAdmin:
		return t.cred.Can(vfs.CapSysPtrace)
	case scopeNone:
		return false
	}
	return true
}

// descendsFrom reports whether a is p or an ancestor of p.
func (p *Process) descendsFrom(a *Process) bool {
	for ; p != nil; p = p.parent {
		if p == a {
			return true
		}
	}
	return false
}

// everyTracer is the PR_SET_PTRACER of a process that any process may trace.
const everyTracer = -1

// acceptsTracer reports whether PR_SET_PTRACER allows a tracer.
func (p *Process) acceptsTracer(tracer *Process) bool {
	if p.ptracer == everyTracer {
		return true
	}
	a := p.k.processes[p.ptracer]
	return a != nil && tracer.descendsFrom(a)
}

// setPtracer is PR_SET_PTRACER.
func (t *Task) setPtracer(id uint64) unix.Errno {
	if int64(id) != everyTracer && id != 0 && t.k.findTask(int32(id)) == nil {
		return unix.EINVAL
	}
	t.proc.ptracer = int32(id)
	return 0
}

// traceOther is PTRACE_ATTACH and PTRACE_SEIZE.
func (t *Task) traceOther(c *Task, seize bool, addr, options uint64) unix.Errno {
	switch {
	case seize && (addr != 0 || options&^optionMask != 0):
		return unix.EIO
	case c.proc == t.proc, !t.mayTrace(c.proc, false), c.trace != nil, c.dying:
		return unix.EPERM
	}
	if seize {
		if errno := t.checkOptions(options); errno != 0 {
			return errno
		}
	}
	c.attachTracer(t, seize, uint32(options))
	if !seize {
		t.k.sendTask(c, signalInfo(unix.SIGSTOP, siKernel))
	}
	if c.state == stopped {
		// It changes from its group-stop to a stop for the tracer.
		c.stopForTracer()
	}
	return 0
}

// checkOptions checks the option word of a tracer.
func (t *Task) checkOptions(options uint64) unix.Errno {
	switch {
	case options&^optionMask != 0:
		return unix.EINVAL
	case options&optionSuspend != 0 && (!t.cred.Can(vfs.CapSysAdmin) || t.seccomp.mode != 0):
		return unix.EPERM
	}
	return 0
}

// ptrace carries out a request about a tracee. The tracee is stopped, except for PTRACE_KILL and
// PTRACE_INTERRUPT.
func (t *Task) ptrace(c *Task, request, addr, data uint64) (uint64, unix.Errno) {
	switch request {
	case unix.PTRACE_PEEKTEXT, unix.PTRACE_PEEKDATA:
		return 0, t.peekWord(c, arch.Addr(addr), arch.Addr(data))
	case unix.PTRACE_POKETEXT, unix.PTRACE_POKEDATA:
		return 0, c.pokeWord(arch.Addr(addr), data)
	case unix.PTRACE_PEEKUSR:
		return 0, t.peekUser(c, addr, arch.Addr(data))
	case unix.PTRACE_POKEUSR:
		return 0, c.pokeUser(addr, data)
	case unix.PTRACE_CONT, unix.PTRACE_SYSCALL, unix.PTRACE_SINGLESTEP, ptraceSysemu, ptraceSysemuStep:
		return 0, c.resumeByRequest(request, data)
	case unix.PTRACE_DETACH:
		if data > lastSignal {
			return 0, unix.EIO
		}
		c.stop.signal = int(data)
		c.detachTracer()
		return 0, 0
	case unix.PTRACE_KILL:
		t.k.sendTask(c, userInfo(unix.SIGKILL, siUser, t.proc.pid, t.cred.UID))
		return 0, 0
	case unix.PTRACE_INTERRUPT, unix.PTRACE_LISTEN:
		return 0, c.interruptOrListen(request)
	case unix.PTRACE_SETOPTIONS, unix.PTRACE_OLDSETOPTIONS:
		errno := t.checkOptions(data)
		if errno == 0 {
			c.trace.options = uint32(data)
		}
		return 0, errno
	case unix.PTRACE_GETEVENTMSG:
		return 0, t.proc.space.WriteU64(arch.Addr(data), c.trace.message)
	case ptraceArchPrctl:
		return t.archPrctl(c, data, arch.Addr(addr))
	}
	return t.ptraceStructures(c, request, addr, data)
}

// ptraceStructures carries out the requests that read or write a structure.
func (t *Task) ptraceStructures(c *Task, request, addr, data uint64) (uint64, unix.Errno) {
	at := arch.Addr(data)
	switch request {
	case unix.PTRACE_GETREGS:
		r := c.ptraceRegisters()
		return 0, t.copyOut(at, r.Bytes())
	case unix.PTRACE_SETREGS:
		b := make([]byte, ptrace.Size)
		if errno := t.copyIn(at, b); errno != 0 {
			return 0, errno
		}
		return 0, c.setPtraceRegisters(b)
	case unix.PTRACE_GETFPREGS:
		return 0, t.copyOut(at, t.traceeState(c).fp[:])
	case unix.PTRACE_SETFPREGS:
		var fp [arch.FPSize]byte
		if errno := t.copyIn(at, fp[:]); errno != 0 {
			return 0, errno
		}
		return 0, t.setTraceeFP(c, fp[:])
	case unix.PTRACE_GETREGSET, unix.PTRACE_SETREGSET:
		return 0, t.registerSet(c, request == unix.PTRACE_SETREGSET, addr, at)
	case unix.PTRACE_GETSIGINFO:
		if c.stop.info == nil {
			return 0, unix.EINVAL
		}
		return 0, t.copyOut(at, c.stop.info[:])
	case unix.PTRACE_SETSIGINFO:
		var info sigInfo
		if errno := t.copyIn(at, info[:]); errno != 0 {
			return 0, errno
		}
		if c.stop.info == nil {
			return 0, unix.EINVAL
		}
		*c.stop.info = info
		return 0, 0
	case unix.PTRACE_PEEKSIGINFO:
		return t.peekSiginfo(c, arch.Addr(addr), at)
	case unix.PTRACE_GETSIGMASK, unix.PTRACE_SETSIGMASK:
		return 0, t.signalMask(c, request == unix.PTRACE_SETSIGMASK, addr, at)
	case ptraceCallInfo:
		info := c.callInfo()
		b := info.Bytes()
		return uint64(len(b)), t.copyOut(at, b[:min(uint64(len(b)), addr)])
	case ptraceGetFilter:
		return t.getFilter(c, addr, at)
	case ptraceMetadata:
		return t.filterMetadata(c, addr, at)
	}
	return 0, unix.EIO
}

// resumeByRequest resumes a stopped tracee as the request says.
func (t *Task) resumeByRequest(request, signal uint64) unix.Errno {
	if signal > lastSignal {
		return unix.EIO
	}
	x := t.trace
	x.syscalls = request == unix.PTRACE_SYSCALL
	x.emulates = request == ptraceSysemu || request == ptraceSysemuStep
	x.steps = request == unix.PTRACE_SINGLESTEP || request == ptraceSysemuStep
	t.stop.signal = int(signal)
	t.resumeTracee()
	return 0
}

// interruptOrListen is PTRACE_INTERRUPT and PTRACE_LISTEN.
func (t *Task) interruptOrListen(request uint64) unix.Errno {
	if !t.trace.seized {
		return unix.EIO
	}
	if request == unix.PTRACE_INTERRUPT {
		t.job.traps = true
		t.wakeTracee()
		return 0
	}
	if i := t.stop.info; i == nil || i.code()>>8 != eventStop {
		return unix.EIO
	}
	t.stop.listens = true
	if t.job.notifies {
		t.resumeTracee()
	}
	return 0
}

// peekWord stores a word of a tracee's memory.
func (t *Task) peekWord(c *Task, at, to arch.Addr) unix.Errno {
	var b [8]byte
	if c.proc.space.PeekForced(at, b[:]) != len(b) {
		return unix.EIO
	}
	return t.copyOut(to, b[:])
}

func (t *Task) pokeWord(at arch.Addr, word uint64) unix.Errno {
	b := binary.LittleEndian.AppendUint64(nil, word)
	if t.proc.space.PokeForced(at, b) != len(b) {
		return unix.EIO
	}
	return 0
}

// ptraceRegisters returns the registers of a stopped tracee.
func (t *Task) ptraceRegisters() ptrace.Registers {
	return ptrace.Registers{Regs: t.regs, OrigRAX: t.origRAX}
}

func (t *Task) setPtraceRegisters(b []byte) unix.Errno {
	r := t.ptraceRegisters()
	errno := r.SetBytes(b)
	t.regs, t.origRAX = r.Regs, r.OrigRAX
	return errno
}

// isUserWord reports whether struct user has a word at an offset.
func isUserWord(offset uint64) bool { return offset%8 == 0 && offset < ptrace.UserSize }

// debugRegister is the number of the debug register at an offset of struct user, or -1.
func debugRegister(offset uint64) int {
	if offset < ptrace.DebugOffset || offset >= ptrace.DebugOffset+64 {
		return -1
	}
	return int(offset-ptrace.DebugOffset) / 8
}

func (t *Task) peekUser(c *Task, offset uint64, to arch.Addr) unix.Errno {
	if !isUserWord(offset) {
		return unix.EIO
	}
	word := uint64(0)
	if offset < ptrace.Size {
		r := c.ptraceRegisters()
		word = r.Word(int(offset / 8))
	} else if n := debugRegister(offset); n >= 0 {
		word = c.debug.Get(n)
	}
	return t.proc.space.WriteU64(to, word)
}

func (t *Task) pokeUser(offset, word uint64) unix.Errno {
	n := debugRegister(offset)
	switch {
	case !isUserWord(offset), offset >= ptrace.Size && n < 0:
		return unix.EIO
	case n >= 0:
		return t.debug.Set(n, word)
	}
	r := t.ptraceRegisters()
	errno := r.SetWord(int(offset/8), word)
	t.regs, t.origRAX = r.Regs, r.OrigRAX
	return errno
}

// Kinds of register sets (include/uapi/linux/elf.h).
const (
	noteStatus      = 1     // NT_PRSTATUS
	noteFP          = 2     // NT_PRFPREG
	noteXState      = 0x202 // NT_X86_XSTATE
	notePermissions = 0x201 // NT_386_IOPERM
)

// registerSet is PTRACE_GETREGSET and PTRACE_SETREGSET.
func (t *Task) registerSet(c *Task, set bool, kind uint64, at arch.Addr) unix.Errno {
	var v struct{ Base, Len uint64 }
	if errno := readStruct(t, at, &v); errno != 0 {
		return errno
	}
	var b []byte
	switch kind {
	case noteStatus:
		r := c.ptraceRegisters()
		b = r.Bytes()
	case noteFP:
		b = t.traceeState(c).fp[:]
	case noteXState:
		if v.Len%8 == 0 && !t.k.hasXSAVE() {
			return unix.ENODEV
		}
		b = t.traceeState(c).regset()
	case notePermissions:
		return unix.ENXIO // no program may use ports
	}
	if b == nil || v.Len%8 != 0 {
		return unix.EINVAL
	}
	v.Len = min(v.Len, uint64(len(b)))
	b = b[:v.Len]
	if !set {
		if errno := t.copyOut(arch.Addr(v.Base), b); errno != 0 {
			return errno
		}
		return writeStruct(t, at, &v)
	}
	if errno := t.copyIn(arch.Addr(v.Base), b); errno != 0 {
		return errno
	}
	if errno := t.setRegisterSet(c, kind, b); errno != 0 {
		return errno
	}
	return writeStruct(t, at, &v)
}

func (t *Task) setRegisterSet(c *Task, kind uint64, b []byte) unix.Errno {
	switch kind {
	case noteStatus:
		return c.setPtraceRegisters(b)
	case noteFP:
		return t.setTraceeFP(c, b)
	}
	return t.setTraceeRegset(c, b)
}

// peekSiginfo copies pending signals.
func (t *Task) peekSiginfo(c *Task, args, to arch.Addr) (uint64, unix.Errno) {
	var a struct {
		Offset uint64
		Flags  uint32
		Count  int32
	}
	if errno := readStruct(t, args, &a); errno != 0 {
		return 0, errno
	}
	const shared = 1
	if a.Flags&^shared != 0 || a.Count < 0 {
		return 0, unix.EINVAL
	}
	list := c.signals.list
	if a.Flags&shared != 0 {
		list = c.proc.signals.list
	}
	done := uint64(0)
	for ; done < uint64(a.Count) && a.Offset+done < uint64(len(list)); done++ {
		i := list[a.Offset+done]
		if errno := t.copyOut(to+arch.Addr(done*uint64(len(i))), i[:]); errno != 0 {
			return partialResult(done, errno)
		}
	}
	return done, 0
}

// signalMask is PTRACE_GETSIGMASK and PTRACE_SETSIGMASK.
func (t *Task) signalMask(c *Task, set bool, size uint64, at arch.Addr) unix.Errno {
	if size != 8 {
		return unix.EINVAL
	}
	if !set {
		mask := c.mask
		if c.hasMask {
			mask = c.oldMask
		}
		return t.proc.space.WriteU64(at, uint64(mask))
	}
	mask, errno := t.readSigset(at)
	if errno == 0 {
		c.mask, c.hasMask = mask&^unblockable, false
	}
	return errno
}

// callInfo is the result of PTRACE_GET_SYSCALL_INFO for a tracee's stop.
func (t *Task) callInfo() ptrace.SyscallInfo {
	r := &t.regs
	info := ptrace.SyscallInfo{IP: r.RIP, SP: r.GPR[arch.RSP]}
	code := int32(0)
	if t.stop.info != nil {
		code = t.stop.info.code()
	}
	arguments := func() {
		info.Number = t.origRAX
		info.Args = [6]uint64{r.GPR[arch.RDI], r.GPR[arch.RSI], r.GPR[arch.RDX], r.GPR[arch.R10], r.GPR[arch.R8], r.GPR[arch.R9]}
	}
	switch {
	case code == int32(unix.SIGTRAP)|0x80 && t.trace.message == messageEntry:
		info.Op = ptrace.SyscallEntry
		arguments()
	case code == int32(unix.SIGTRAP)|0x80 && t.trace.message == messageExit:
		info.Op, info.Result = ptrace.SyscallExit, r.GPR[arch.RAX]
	case code == int32(unix.SIGTRAP)|unix.PTRACE_EVENT_SECCOMP<<8:
		info.Op, info.RetData = ptrace.SyscallSeccomp, uint32(t.trace.message)
		arguments()
	}
	return info
}

// filterOf finds filter n of a tracee, in the order of installation.
func (t *Task) filterOf(c *Task, n uint64) (*seccompFilter, unix.Errno) {
	if !t.cred.Can(vfs.CapSysAdmin) || t.seccomp.mode != 0 {
		return nil, unix.EACCES
	}
	if c.seccomp.mode != seccompModeFilter {
		return nil, unix.EINVAL
	}
	f := c.seccomp.filters
	if n >= uint64(f.count) {
		return nil, unix.ENOENT
	}
	for uint64(f.count) > n+1 {
		f = f.before
	}
	return f, 0
}

// getFilter is PTRACE_SECCOMP_GET_FILTER: the number of instructions, and the instructions if there
// is room for them.
func (t *Task) getFilter(c *Task, n uint64, to arch.Addr) (uint64, unix.Errno) {
	f, errno := t.filterOf(c, n)
	if errno != 0 {
		return 0, errno
	}
	list := f.program.Instructions()
	if to != 0 {
		errno = t.copyOut(to, bpf.Encode(list))
	}
	return uint64(len(list)), errno
}

// filterMetadata is PTRACE_SECCOMP_GET_METADATA.
func (t *Task) filterMetadata(c *Task, size uint64, at arch.Addr) (uint64, unix.Errno) {
	var m struct{ Filter, Flags uint64 }
	size = min(size, uint64(len(bytesOf(&m))))
	if !t.cred.Can(vfs.CapSysAdmin) || t.seccomp.mode != 0 {
		return 0, unix.EACCES
	}
	if size < 8 {
		return 0, unix.EINVAL
	}
	if errno := t.copyIn(at, bytesOf(&m.Filter)); errno != 0 {
		return 0, errno
	}
	f, errno := t.filterOf(c, m.Filter)
	if errno != 0 {
		return 0, errno
	}
	m.Flags = uint64(f.flags & seccompLog)
	return size, t.copyOut(at, bytesOf(&m)[:size])
}
