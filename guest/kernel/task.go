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

// taskState is the state of a task for the scheduler.
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
	dirty bool      // regs must be written before the thread continues

	call    callState
	origRAX uint64 // RAX at the SYSCALL instruction of the current call, or noCall
	waiting waitState

	signals  signalQueue // directed at this thread
	mask     sigset
	oldMask  sigset // mask to restore, for sigsuspend, ppoll and similar calls
	hasMask  bool   // oldMask is in use
	waitSet  sigset // the signals that rt_sigtimedwait waits for
	forced   sigset // pending signals raised by the thread's own instruction
	due      *sigInfo
	altStack sigStack
	trap     trapInfo

	trace        *tracee // nil: it is not traced
	tracees      []*Task // its tracees, the oldest first
	stop         *traceStop
	job          jobControl
	debug        ptrace.DebugRegisters
	resumes      bool // it has stopped for a hardware breakpoint at its next instruction
	stepping     stepping
	interrupted  *interruptedCall
	restartBlock *interruptedCall // of restart_syscall
	dying        bool             // it stops for its tracer once more, then ends
	ended        exitStatus       // of the thread alone

	clearTID    arch.Addr // set_tid_address
	robustList  arch.Addr
	vforkDone   *wait.Queue   // wakes the parent that vfork suspended
	semUndo     *sem.UndoList // shared by CLONE_SYSVSEM; nil until it is needed
	affinity    uint64
	parentDeath int // PR_SET_PDEATHSIG
	noNewPrivs  bool
	seccomp     seccompState
	personality uint32
	cred        vfs.Cred // its credentials
	schedule    schedule
	piLocks     []*piLock   // locks that it owns and others wait for
	inherited   int         // highest rank of the threads that wait for its locks
	timerSlack  uint64      // PR_SET_TIMERSLACK; 0: the default
	waits       uint64      // number of its waits
	started     int64       // ns
	shown       int64       // time that it has read last, of a thread of the service
	userTime    arch.Cycles // cycles spent on a core
	kernelTime  arch.Cycles
}

// trapInfo describes the last hardware exception for a signal frame.
type trapInfo struct{ number, errorCode, address uint64 }

// ID is the thread's id as the guest sees it.
func (t *Task) ID() arch.ThreadID { return t.id }

// Process is the process that the thread belongs to.
func (t *Task) Process() *Process { return t.proc }

// Name is the thread's name, as prctl sets it.
func (t *Task) Name() string { return t.name }

// Space is the address space of the thread's process.
func (t *Task) Space() *mem.Space { return t.proc.space.Space() }

// HasKernelWork reports whether the kernel has to act for the thread before it continues in user
// mode: to continue a system call or deliver a signal.
func (t *Task) HasKernelWork() bool { return t.call.active || t.isSignalReady() || t.isSupervised() }

// Load loads the thread into the processor.
func (t *Task) Load() { t.k.cpu.Load(t.ctx, t.proc.space.Space()) }

// Prepare does the kernel's work before the thread continues in user mode: it continues a system
// call that was waiting and delivers signals. It returns false if the thread waits again or has
// ended, and true with the thread loaded.
func (k *Kernel) Prepare(t *Task) bool {
	k.actFor(t)
	for {
		if t.isSupervised() && !t.actBeforeCall() {
			return false
		}
		if t.call.active {
			t.attemptCall()
		}
		if t.state != running || t.dying {
			return false
		}
		if t.isSupervised() && !t.actAfterCall() {
			return false
		}
		if !t.deliverPending() && !t.call.active {
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
	k.actFor(t)
	switch s.Reason {
	case arch.StopSyscall:
		t.enterCall()
	case arch.StopFault, arch.StopNoMemory:
		t.pageFault(s)
	case arch.StopException:
		t.readRegs()
		t.raiseException(s.Vector)
	case arch.StopInterrupt:
		t.readRegs()
		t.raiseInterrupt(s.Vector)
	case arch.StopPause:
		k.sched.Yield(t.id)
	case arch.StopEngine:
		k.stopRun(s.Err.Error())
	}
}

// readRegs copies the registers of the loaded thread for the kernel to use.
func (t *Task) readRegs() {
	if !t.dirty {
		t.k.cpu.Regs(&t.regs)
	}
}

// enterCall begins a system call and makes the first attempt.
func (t *Task) enterCall() {
	t.beginCall()
	t.attemptCall()
}

// beginCall records the system call that the thread has just issued.
func (t *Task) beginCall() {
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

// admitCall does the work before the handler of a system call: tracers and seccomp; false: the
// handler is not called now.
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
	if t.seccomp.mode != 0 && !t.hasTraceOption(optionSuspend) && !t.applySeccomp() {
		return false
	}
	if t.call.entered && t.call.number == noCall {
		t.skipCall(t.regs.GPR[arch.RAX])
		return false
	}
	t.call.admitted = true
	return true
}

// CallNumber is the system call number in RAX: Linux reads it as an int.
func CallNumber(rax uint64) uint64 { return uint64(int64(int32(rax))) }

// attemptCall calls the handler of the current system call, for the first time or again after a
// wait.
func (t *Task) attemptCall() {
	if !t.call.admitted && !t.admitCall() {
		return
	}
	_ = t.k.memory.TakeRefused() // of earlier events
	result, errno := t.dispatchCall()
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
		// The call stays as it is; signals decide how it ends.
		t.call.restart = errno
		return
	case errReplaced:
	case errNoReturn:
		t.finishCall(t.regs.GPR[arch.RAX])
	case noErrno:
		t.leaveCall(result)
	default:
		t.leaveCall(linux.Failure(errno))
	}
}

// leaveCall completes the system call with a raw result.
func (t *Task) leaveCall(result uint64) {
	t.regs.GPR[arch.RAX] = result
	t.finishCall(result)
}

func (t *Task) finishCall(result uint64) {
	t.dirty = true
	t.restoreSignalMask()
	if t.trace != nil {
		t.trace.returned = true
	}
	t.k.observer.Syscall(t, t.call.number, t.call.args, result)
	t.call = callState{}
}

// PageIn lets the address space of the loaded thread supply the page of a fault. If it can, the run
// continues as if there had been no fault; otherwise the stop must be passed to Handle.
func (k *Kernel) PageIn(t *Task, s arch.Stop) bool {
	if t.proc.space.Fault(s.Page, s.Access) != mm.Resolved {
		return false
	}
	// Page table entries of shared mappings change with snapshots, which must not have a cost.
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
		// This is no page fault but a general protection fault, which has no address.
		t.trap = trapInfo{number: 13}
		t.forceSignal(signalInfo(unix.SIGSEGV, siKernel))
		return
	}
	signal, cause := f.Signal()
	t.forceSignal(faultInfo(signal, cause, addr))
}

// canonicalKernel is the first address of the upper half of canonical addresses.
const canonicalKernel arch.Addr = 0xffff800000000000

// vectorInvalidOpcode is #UD, the exception of an instruction that the processor does not have (SDM
// volume 3, section 6.15).
const vectorInvalidOpcode = 6

// raiseException raises the signal that Linux sends for a processor exception.
func (t *Task) raiseException(vector uint8) {
	t.trap = trapInfo{number: uint64(vector)}
	pc := arch.Addr(t.regs.RIP)
	switch vector {
	case 0:
		t.forceSignal(faultInfo(unix.SIGFPE, fpeIntDiv, pc))
	case 1:
		t.forceSignal(faultInfo(unix.SIGTRAP, trapTrace, pc))
	case vectorInvalidOpcode:
		t.forceSignal(faultInfo(unix.SIGILL, illIllOpn, pc))
	case 16:
		t.forceSignal(faultInfo(unix.SIGFPE, t.x87Cause(), pc))
	case 19:
		t.forceSignal(faultInfo(unix.SIGFPE, t.sseCause(), pc))
	case 12:
		t.forceSignal(signalInfo(unix.SIGBUS, siKernel))
	case 17:
		t.forceSignal(faultInfo(unix.SIGBUS, busAdrAln, 0))
	default:
		t.forceSignal(signalInfo(unix.SIGSEGV, siKernel))
	}
}

func (t *Task) raiseInterrupt(vector uint8) {
	t.trap = trapInfo{number: uint64(vector)}
	switch vector {
	case 3:
		t.forceSignal(signalInfo(unix.SIGTRAP, siKernel))
	case 1:
		t.forceSignal(faultInfo(unix.SIGTRAP, trapBreakpoint, arch.Addr(t.regs.RIP)))
	case 0x80:
		t.k.stopRun(fmt.Sprintf("thread %d made a 32-bit system call (int 0x80, number %d), which is not supported",
			t.id, uint32(t.regs.GPR[arch.RAX])))
	default:
		// Linux: a general protection fault, with the PC at the instruction.
		t.regs.RIP -= 2
		t.dirty = true
		t.trap.number = 13
		t.forceSignal(signalInfo(unix.SIGSEGV, siKernel))
	}
}

// fpCause is the cause of an exception, from the flags of a status word: from bit 0, invalid,
// denormal, divide, overflow, underflow, precision.
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

// AddUserTime accounts for time on a core in user mode.
func (t *Task) AddUserTime(c arch.Cycles) {
	t.userTime += c
	t.coreAccount().user += c
	if len(t.proc.cpuTimers) > 0 {
		t.proc.runCPUTimers()
	}
}

// AddKernelTime accounts for time on a core in the kernel.
func (t *Task) AddKernelTime(c arch.Cycles) {
	t.kernelTime += c
	t.coreAccount().kernel += c
}

// coreAccount is the account of the core on which the thread runs, or ran last.
func (t *Task) coreAccount() *coreTime { return &t.k.cores[max(0, t.k.sched.Core(t.id))] }

// vfsContext is the identity under which the current call acts on files.
func (t *Task) vfsContext() *vfs.Ctx {
	p := t.proc
	return &vfs.Ctx{
		Cred: t.cred, Root: p.context.root, Cwd: p.context.cwd, Umask: p.context.umask, PID: p.pid, TID: int32(t.id),
		Service: p.service != nil,
	}
}
