package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/ptrace"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// taskState is what the scheduler may do with a task.
type taskState uint8

const (
	running taskState = iota // runnable or on a core
	blocked                  // in a system call that waits
	stopped                  // by a stop signal
	traced                   // stopped for its tracer
	dead
)

// Task is a guest thread.
type Task struct {
	k     *Kernel
	id    arch.ThreadID
	proc  *Process
	ctx   arch.Context
	state taskState
	name  string // comm, at most 15 bytes

	regs  arch.Regs // valid while in the kernel
	dirty bool      // regs must be written before the thread runs on

	call    callState
	origRAX uint64 // RAX at the SYSCALL of the call that it is in, or noCall
	waiting waitState

	signals  signalQueue // directed at this thread
	mask     sigset
	oldMask  sigset // mask to go back to, for sigsuspend, ppoll and the like
	hasMask  bool   // there is one
	waitSet  sigset // what rt_sigtimedwait waits for
	forced   sigset // raised by the thread's own instruction, and pending
	due      *sigInfo
	altStack sigStack
	trap     trapInfo

	trace        *tracee // nil: it is not traced
	tracees      []*Task // that it traces, the oldest first
	stop         *traceStop
	job          jobControl
	debug        ptrace.DebugRegisters
	resumes      bool // it was stopped for a hardware breakpoint at its next instruction
	stepping     stepping
	interrupted  *interruptedCall
	restartBlock *interruptedCall // of restart_syscall
	dying        bool             // it stops for its tracer once more, and ends
	ended        exitStatus       // of the thread alone

	clearTID    arch.Addr // set_tid_address
	robustList  arch.Addr
	vforkDone   *wait.Queue   // the parent that vfork suspended
	semUndo     *sem.UndoList // shared by CLONE_SYSVSEM; nil until it is needed
	affinity    uint64
	parentDeath int // PR_SET_PDEATHSIG
	noNewPrivs  bool
	seccomp     seccompState
	personality uint32
	cred        vfs.Cred // who it acts as
	schedule    schedule
	piLocks     []*piLock   // that it has and others wait for
	inherited   int         // rank of those that wait for what the thread holds
	timerSlack  uint64      // PR_SET_TIMERSLACK; 0: the default
	waits       uint64      // how often it has waited
	started     int64       // ns
	userTime    arch.Cycles // cycles spent on a core
	kernelTime  arch.Cycles
}

// trapInfo is what a signal frame tells of the last hardware exception.
type trapInfo struct{ number, errorCode, address uint64 }

// ID is the thread's id as the guest sees it.
func (t *Task) ID() arch.ThreadID { return t.id }

// Process is the process that the thread belongs to.
func (t *Task) Process() *Process { return t.proc }

// Name is the thread's name, as prctl sets it.
func (t *Task) Name() string { return t.name }

// Space is the address space of the thread's process.
func (t *Task) Space() *mem.Space { return t.proc.space.Space() }

// KernelActs tells that the kernel will do something for the thread before it
// goes on in user mode: carry on a system call, or deliver a signal.
func (t *Task) KernelActs() bool { return t.call.active || t.signalReady() || t.isSupervised() }

// Load makes the thread the one that the engine acts on.
func (t *Task) Load() { t.k.cpu.Load(t.ctx, t.proc.space.Space()) }

// Prepare does what the kernel has to do before the thread can go on in user
// mode: carries on a system call that was waiting, delivers signals. It
// returns false when the thread waits again or is gone. On true the thread is
// loaded.
func (k *Kernel) Prepare(t *Task) bool {
	k.current = t
	for {
		if t.isSupervised() && !t.proceed() {
			return false
		}
		if t.call.active {
			t.attempt()
		}
		if t.state != running || t.dying {
			return false
		}
		if t.isSupervised() && !t.settleCall() {
			return false
		}
		if !t.deliverSignal() && !t.call.active {
			break
		}
		if t.state != running {
			return false
		}
	}
	t.resolveInterrupted(false, false)
	t.origRAX = noCall
	t.Load()
	if t.dirty {
		k.cpu.SetRegs(&t.regs)
		t.dirty = false
	}
	return true
}

// Handle acts on the stop of a thread's run. The thread is still loaded.
func (k *Kernel) Handle(t *Task, s arch.Stop) {
	k.current = t
	switch s.Reason {
	case arch.StopSyscall:
		t.enter()
	case arch.StopFault, arch.StopNoMemory:
		t.pageFault(s)
	case arch.StopException:
		t.readRegs()
		t.exception(s.Vector)
	case arch.StopInterrupt:
		t.readRegs()
		t.interrupt(s.Vector)
	case arch.StopPause:
		k.sched.Yield(t.id)
	case arch.StopEngine:
		k.stop(s.Err.Error())
	}
}

// readRegs copies the registers of the loaded thread for the kernel to use.
func (t *Task) readRegs() {
	if !t.dirty {
		t.k.cpu.Regs(&t.regs)
	}
}

// enter begins a system call, and carries it out as far as that goes.
func (t *Task) enter() {
	t.begin()
	t.attempt()
}

// begin notes what the system call is that the thread has just issued.
func (t *Task) begin() {
	t.readRegs()
	r := &t.regs.GPR
	t.origRAX = r[arch.RAX]
	t.regs.GPR[arch.RCX] = t.regs.RIP
	t.regs.GPR[arch.R11] = t.regs.RFLAGS
	t.dirty = true
	if t.isSupervised() || t.seccomp.mode != 0 {
		defer func() { t.regs.GPR[arch.RAX] = linux.Failure(unix.ENOSYS) }()
	}
	t.call = callState{
		active: true, number: CallNumber(r[arch.RAX]),
		args: [6]uint64{r[arch.RDI], r[arch.RSI], r[arch.RDX], r[arch.R10], r[arch.R8], r[arch.R9]},
	}
	t.k.extraCost += arch.Cycles(t.k.costs.Syscall)
}

// admitCall does what comes before the handler of a system call; false: the handler is
// not to be called, or not yet.
func (t *Task) admitCall() bool {
	if t.trace != nil && !t.call.entered {
		t.call.entered = true
		if t.trace.syscalls || t.trace.emulates {
			t.stopForCall(stopAtEntry)
			return false
		}
	}
	if t.call.emulated {
		t.skipCall(t.regs.GPR[arch.RAX])
		return false
	}
	if t.seccomp.mode != 0 && !t.hasTraceOption(optionSuspend) && !t.filterCall() {
		return false
	}
	if t.call.entered && t.call.number == noCall {
		t.skipCall(t.regs.GPR[arch.RAX])
		return false
	}
	t.call.admitted = true
	return true
}

// CallNumber is the number of a system call with RAX: Linux takes it for an int.
func CallNumber(rax uint64) uint64 { return uint64(int64(int32(rax))) }

// attempt carries out the current system call, for the first time or again
// after a wait.
func (t *Task) attempt() {
	if !t.call.admitted && !t.admitCall() {
		return
	}
	_ = t.k.memory.TakeRefused() // of what happened by itself since
	result, errno := t.dispatch()
	if t.state == dead || t.dying {
		return
	}
	if t.proc.space.Starved() {
		t.k.outOfMemory(t, t.callText())
		return
	}
	t.noteRefusal(errno)
	t.call.attempt++
	switch errno {
	case errBlocked, errRestart, errNoInterrupt, errInterrupted, errRestartBlock:
		// The call stays as it is; signals decide what becomes of it.
		t.call.restart = errno
		return
	case errReplaced:
	case errNoReturn:
		t.finish(t.regs.GPR[arch.RAX])
	case noErrno:
		t.leave(result)
	default:
		t.leave(linux.Failure(errno))
	}
}

// leave puts the raw result where the guest finds it.
func (t *Task) leave(result uint64) {
	t.regs.GPR[arch.RAX] = result
	t.finish(result)
}

func (t *Task) finish(result uint64) {
	t.dirty = true
	t.restoreMask()
	if t.trace != nil {
		t.trace.returned = true
	}
	t.k.observer.Syscall(t, t.call.number, t.call.args, result)
	t.call = callState{}
}

// PageIn lets the address space of the loaded thread supply the page that a
// fault is about. If it can, the run goes on as if nothing had happened;
// otherwise the stop is for Handle.
func (k *Kernel) PageIn(t *Task, s arch.Stop) bool {
	if t.proc.space.Fault(s.Page, s.Access) != mm.Resolved {
		return false
	}
	// Entries of shared mappings come and go with snapshots, which must not
	// cost anything.
	if v, ok := t.proc.space.Find(s.Page); ok && v.Flags&mm.Shared == 0 {
		k.extraCost += arch.Cycles(k.costs.PageFault)
	}
	return true
}

// pageFault raises the signal for a fault that cannot be resolved.
func (t *Task) pageFault(s arch.Stop) {
	f := t.proc.space.Fault(s.Page, s.Access)
	switch f {
	case mm.Resolved:
		return
	case mm.OutOfMemory:
		t.k.outOfMemory(t, fmt.Sprintf("%s at %#x", accessNames[s.Access], uint64(s.Page)))
		return
	}
	t.readRegs()
	addr := t.k.cpu.FaultAddr()
	code := uint64(4) // user mode
	if s.Kind == arch.Denied {
		code |= 1
	}
	switch s.Access {
	case arch.AccessWrite:
		code |= 2
	case arch.AccessFetch:
		code |= 16
	}
	t.trap = trapInfo{number: 14, errorCode: code, address: uint64(addr)}
	if addr >= arch.UserEnd && addr < canonicalKernel {
		// Not a page fault but general protection, which has no address.
		t.trap = trapInfo{number: 13}
		t.force(signalInfo(unix.SIGSEGV, siKernel))
		return
	}
	signal, cause := f.Signal()
	t.force(faultInfo(signal, cause, addr))
}

// canonicalKernel is the first address of the upper half that an address can
// have at all.
const canonicalKernel arch.Addr = 0xffff800000000000

// vectorInvalidOpcode is the exception of an instruction that the processor does not
// have, #UD (SDM volume 3, section 6.15).
const vectorInvalidOpcode = 6

// exception turns a processor exception into the signal that Linux sends.
func (t *Task) exception(vector uint8) {
	t.trap = trapInfo{number: uint64(vector)}
	pc := arch.Addr(t.regs.RIP)
	switch vector {
	case 0:
		t.force(faultInfo(unix.SIGFPE, fpeIntDiv, pc))
	case 1:
		t.force(faultInfo(unix.SIGTRAP, trapTrace, pc))
	case vectorInvalidOpcode:
		t.force(faultInfo(unix.SIGILL, illIllOpn, pc))
	case 16:
		t.force(faultInfo(unix.SIGFPE, t.x87Cause(), pc))
	case 19:
		t.force(faultInfo(unix.SIGFPE, t.sseCause(), pc))
	case 17:
		t.force(faultInfo(unix.SIGBUS, busAdrAln, 0))
	default:
		t.force(signalInfo(unix.SIGSEGV, siKernel))
	}
}

func (t *Task) interrupt(vector uint8) {
	t.trap = trapInfo{number: uint64(vector)}
	switch vector {
	case 3:
		t.force(signalInfo(unix.SIGTRAP, siKernel))
	case 1:
		t.force(faultInfo(unix.SIGTRAP, trapBreakpoint, arch.Addr(t.regs.RIP)))
	case 0x80:
		t.k.stop(fmt.Sprintf("thread %d made a 32-bit system call (int 0x80, number %d), which is not supported",
			t.id, uint32(t.regs.GPR[arch.RAX])))
	default:
		// Linux: general protection, with the PC at the instruction.
		t.regs.RIP -= 2
		t.dirty = true
		t.trap.number = 13
		t.force(signalInfo(unix.SIGSEGV, siKernel))
	}
}

// Causes in the status words, lowest bit first: invalid, denormal, divide,
// overflow, underflow, precision.
func fpCause(status uint32) int32 {
	switch {
	case status&1 != 0:
		return fpeFltInv
	case status&4 != 0:
		return fpeFltDiv
	case status&8 != 0:
		return fpeFltOvf
	case status&(2|16) != 0:
		return fpeFltUnd
	case status&32 != 0:
		return fpeFltRes
	}
	return 0
}

func (t *Task) x87Cause() int32 {
	var fp [arch.FPSize]byte
	t.k.cpu.FP(&fp)
	return fpCause(uint32(fp[2]) &^ uint32(fp[0]))
}

func (t *Task) sseCause() int32 {
	var fp [arch.FPSize]byte
	t.k.cpu.FP(&fp)
	mxcsr := uint32(fp[24]) | uint32(fp[25])<<8
	return fpCause(mxcsr &^ (mxcsr >> 7))
}

// AddUserTime and AddKernelTime account for time on a core.
func (t *Task) AddUserTime(c arch.Cycles) {
	t.userTime += c
	t.core().user += c
	if len(t.proc.cpuTimers) > 0 {
		t.proc.runCPUTimers()
	}
}

// AddKernelTime accounts for time in the kernel.
func (t *Task) AddKernelTime(c arch.Cycles) {
	t.kernelTime += c
	t.core().kernel += c
}

// core is the account of the core that the thread runs on, or ran on last.
func (t *Task) core() *coreTime { return &t.k.cores[max(0, t.k.sched.Core(t.id))] }

// vfsContext is on whose behalf the current call acts on files.
func (t *Task) vfsContext() *vfs.Ctx {
	p := t.proc
	return &vfs.Ctx{
		Cred: t.cred, Root: p.context.root, Cwd: p.context.cwd, Umask: p.context.umask, PID: p.pid, TID: int32(t.id),
	}
}
