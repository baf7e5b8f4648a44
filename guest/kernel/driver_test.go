package kernel

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Tests of the methods with which a driver controls threads and examines them.

// driven is a guest with a page of memory for a test.
type driven struct {
	*guest
	memory uint64
}

func newDriven(t *testing.T) *driven {
	d := &driven{guest: newGuest(t, guestOptions{})}
	d.memory = d.callResult(unix.SYS_MMAP, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	return d
}

// callResult makes the first thread issue a system call that returns.
func (d *driven) callResult(number uint64, args ...uint64) uint64 {
	d.t.Helper()
	d.call(d.first(), number, args...)
	return d.result(firstID)
}

// result is the result of the only completed call of a thread that was not checked yet.
func (d *driven) result(id arch.ThreadID) uint64 {
	d.t.Helper()
	x := d.log(id)
	if len(x.results) != 1 {
		d.t.Fatalf("thread %d has %d results, want 1", id, len(x.results))
	}
	r := x.results[0]
	x.results = nil
	return r
}

func (d *driven) write(at uint64, b []byte) {
	d.t.Helper()
	if errno := d.first().proc.space.CopyOut(arch.Addr(at), b); errno != 0 {
		d.t.Fatal(errno)
	}
}

func (d *driven) waitsIn(want uint64) {
	d.t.Helper()
	if number, waits := d.first().BlockedIn(); !waits || number != want {
		d.t.Errorf("the thread is in call %d, blocked: %v; want blocked in %d", number, waits, want)
	}
}

func TestCompleteCall(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	a.Load()
	d.cpu.Syscall(syscallAddr, unix.SYS_READ, 7, d.memory, 3)
	d.k.CompleteCall(a, 3, []event.Write{{Addr: arch.Addr(d.memory), Data: []byte("abc")}})
	if got := d.result(firstID); got != 3 {
		t.Errorf("read returns %d, want 3", got)
	}
	b := make([]byte, 3)
	if a.proc.Peek(arch.Addr(d.memory), b); string(b) != "abc" {
		t.Errorf("memory has %q, want abc", b)
	}
	if got := a.currentRegs().GPR[arch.RAX]; got != 3 {
		t.Errorf("RAX is %d, want 3", got)
	}
	if n := d.k.Stats().Syscalls["read"]; n != 1 {
		t.Errorf("%d calls of read are counted, want 1", n)
	}
}

func TestReturnFromFunction(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	a.Load()
	var r arch.Regs
	d.cpu.Regs(&r)
	r.GPR[arch.RSP] = d.memory
	d.cpu.SetRegs(&r)
	d.write(d.memory, []byte{0x10, 0x20, 0x40, 0, 0, 0, 0, 0})
	d.k.ReturnFromFunction(a, 99)
	got := a.currentRegs()
	if got.RIP != 0x402010 || got.GPR[arch.RSP] != d.memory+8 || got.GPR[arch.RAX] != 99 {
		t.Errorf("PC %#x, RSP %#x, RAX %d", got.RIP, got.GPR[arch.RSP], got.GPR[arch.RAX])
	}
	// A return address that cannot be read is left to the instruction.
	r.GPR[arch.RSP] = 8
	a.Load()
	a.dirty = false
	d.cpu.SetRegs(&r)
	d.k.ReturnFromFunction(a, 1)
	if got := a.currentRegs(); got.GPR[arch.RSP] != 8 {
		t.Errorf("RSP is %#x, want 8", got.GPR[arch.RSP])
	}
}

func TestExpireAndEndWait(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	if !a.Runnable() {
		t.Error("the thread is not runnable")
	}
	d.call(a, unix.SYS_FUTEX, d.memory, linux.FutexWait, 0, 0)
	d.waitsIn(unix.SYS_FUTEX)
	d.k.EndWait(a)
	d.run()
	if got := d.result(firstID); got != 0 {
		t.Errorf("a futex wait that is ended returns %s, want 0", linux.ResultText(got))
	}
	d.call(a, unix.SYS_FUTEX, d.memory, linux.FutexWait, 0, 0)
	d.k.ExpireWait(a)
	d.run()
	if got := d.result(firstID); got != linux.Failure(unix.ETIMEDOUT) {
		t.Errorf("a futex wait that expires returns %s, want ETIMEDOUT", linux.ResultText(got))
	}
	d.call(a, unix.SYS_PAUSE)
	d.k.EndWait(a)
	d.run()
	d.waitsIn(unix.SYS_PAUSE)
}

// scheduleOverride is an Override of a run that follows a schedule.
type scheduleOverride struct {
	holds, endless bool
	clock          int64
}

func (o *scheduleOverride) Clock(now int64) int64      { return now + o.clock }
func (o *scheduleOverride) IgnoresFutexTimeouts() bool { return o.endless }
func (o *scheduleOverride) IgnoresCallTimeouts() bool  { return false }
func (o *scheduleOverride) HoldsSignals(*Task) bool    { return o.holds }

func TestOverride(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	o := &scheduleOverride{endless: true, clock: 5e9}
	d.k.SetOverride(o)
	d.callResult(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, d.memory)
	if s, _ := a.proc.space.ReadU64(arch.Addr(d.memory)); s != 1005 {
		t.Errorf("the clock shows %d s, want 1005", s)
	}
	d.write(d.memory, make([]byte, 4))
	d.write(d.memory+16, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	d.call(a, unix.SYS_FUTEX, d.memory, linux.FutexWait, 0, d.memory+16)
	d.pass(2e9)
	d.waitsIn(unix.SYS_FUTEX)
	o.endless = false
	d.k.RecheckTimeouts()
	d.run()
	if got := d.result(firstID); got != linux.Failure(unix.ETIMEDOUT) {
		t.Errorf("the wait returns %s, want ETIMEDOUT", linux.ResultText(got))
	}
	d.k.SetOverride(nil)
	if d.k.override.HoldsSignals(a) {
		t.Error("signals are held without an override")
	}
}

// handleSignal installs a handler.
func (d *driven) handleSignal(n unix.Signal) {
	action := make([]byte, 32)
	putU64(action, handlerAddr)
	putU64(action[8:], saRestorer)
	putU64(action[16:], restorer)
	d.write(d.memory+64, action)
	d.callResult(unix.SYS_RT_SIGACTION, uint64(n), d.memory+64, 0, 8)
}

func TestHeldSignals(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	o := &scheduleOverride{holds: true}
	d.k.SetOverride(o)
	d.handleSignal(unix.SIGUSR1)
	d.callResult(unix.SYS_KILL, firstID, uint64(unix.SIGUSR1))
	if n := len(d.log(firstID).deliveries); n != 0 {
		t.Fatalf("%d signals are delivered before they are due", n)
	}
	info := userInfo(unix.SIGUSR1, siUser, firstID, 0)
	d.k.Deliver(a, info[:])
	d.run()
	if n := len(d.log(firstID).deliveries); n != 1 || a.pendingSignals() != 0 {
		t.Fatalf("%d signals are delivered and %#x are pending, want 1 and none", n, a.pendingSignals())
	}
	d.sigreturn(a)
	d.log(firstID).results = nil
	// A signal that is due before it arrives is delivered once.
	d.k.Deliver(a, info[:])
	d.run()
	d.sigreturn(a)
	d.log(firstID).results = nil
	d.callResult(unix.SYS_KILL, firstID, uint64(unix.SIGUSR1))
	if n := len(d.log(firstID).deliveries); n != 2 || a.pendingSignals() != 0 {
		t.Errorf("%d signals are delivered and %#x are pending, want 2 and none", n, a.pendingSignals())
	}
	// Signals are no longer held.
	d.callResult(unix.SYS_KILL, firstID, uint64(unix.SIGUSR1))
	o.holds = false
	d.k.RecheckSignals()
	d.run()
	if n := len(d.log(firstID).deliveries); n != 3 {
		t.Errorf("%d signals are delivered, want 3", n)
	}
	d.k.Deliver(a, make([]byte, 128))
	if a.due != nil {
		t.Error("a siginfo_t without a signal is due")
	}
}

func TestDescribe(t *testing.T) {
	d := newDriven(t)
	expect := func(want string) {
		t.Helper()
		if got := d.k.Describe(); !strings.Contains(got, want) {
			t.Errorf("the description is %q, want %q in it", got, want)
		}
	}
	expect(`thread 1000 "prog" of process 1000 (/bin/prog): runnable at 0x400102`)
	d.call(d.first(), unix.SYS_FORK)
	child := arch.ThreadID(d.result(firstID))
	d.callResult(unix.SYS_KILL, uint64(child), uint64(unix.SIGSTOP))
	expect("stopped by a signal")
	d.callResult(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uint64(child), 0, 0)
	expect("stopped for its tracer, thread 1000")
	d.call(d.first(), unix.SYS_FUTEX, d.memory, linux.FutexWait, 0, 0)
	expect("waits in futex on the word at")
	d.k.EndWait(d.first())
	d.run()
	d.log(firstID).results = nil
	d.call(d.first(), unix.SYS_WAIT4, ^uint64(0), 0, 0, 0)
	d.log(firstID).results = nil
	d.call(d.first(), unix.SYS_PAUSE)
	expect("waits in pause")
}

func TestTrace(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	d.write(d.memory, []byte("/data/file\x00"))
	for _, c := range []struct {
		number uint64
		args   [linux.MaxArguments]uint64
		result uint64
		want   string
	}{
		{unix.SYS_OPENAT, [6]uint64{atCwd, d.memory, 0, 0o644}, 3, `openat(AT_FDCWD, "/data/file", `},
		{unix.SYS_WRITE, [6]uint64{1, d.memory, 5}, 5, `write(1, "/data", 5) = 5`},
		{unix.SYS_WRITE, [6]uint64{1, d.memory, 100}, 100, `"..., 100) = 100`},
		{unix.SYS_OPEN, [6]uint64{8, 0, 0}, linux.Failure(unix.EFAULT), `open(0x8, `},
		{unix.SYS_MUNMAP, [6]uint64{0, 4096}, linux.Failure(unix.EINVAL), "= -1 EINVAL"},
		{9999, [6]uint64{}, linux.Failure(unix.ENOSYS), "syscall_9999("},
	} {
		if got := a.Trace(c.number, c.args, c.result); !strings.Contains(got, c.want) {
			t.Errorf("the trace is %q, want %q in it", got, c.want)
		}
	}
}

func TestInspect(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	content, stat, errno := a.FileContent("/data/file")
	if errno != 0 || string(content) != "0123456789" || len(stat) != 144 {
		t.Errorf("/data/file has %q and a stat of %d bytes, %v", content, len(stat), errno)
	}
	if _, _, errno := a.FileContent("/data"); errno != unix.EINVAL {
		t.Errorf("a directory: %v, want EINVAL", errno)
	}
	if _, _, errno := a.FileContent("/none"); errno != unix.ENOENT {
		t.Errorf("a missing file: %v, want ENOENT", errno)
	}
	p := d.k.Process(int32(firstID))
	if p != a.Process() || d.k.Process(9999) != nil || d.k.Process(initID) != nil {
		t.Error("Process finds another process than that of the program")
	}
	if p.Executable() != "/bin/prog" || !slices.Equal(p.Args(), []string{"prog", "first"}) || len(p.Auxv()) == 0 {
		t.Errorf("the program is %s %q", p.Executable(), p.Args())
	}
	var r arch.Regs
	var fp [arch.FPSize]byte
	a.Load()
	d.cpu.SetFP(&initialFP)
	if a.Registers(&r, &fp); r.RIP != syscallAddr+2 || fp != initialFP {
		t.Errorf("PC %#x, floating-point state %x", r.RIP, fp)
	}
	d.call(a, unix.SYS_FUTEX, d.memory, linux.FutexWait, 0, 0)
	if number, in := a.Call(); !in || number != unix.SYS_FUTEX || a.Argument(0) != d.memory {
		t.Errorf("the thread is in call %d of %#x", number, a.Argument(0))
	}
}

func TestPageIn(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	a.Load()
	if !d.k.PageIn(a, d.cpu.Fault(arch.AccessWrite, arch.Addr(d.memory+0x5000))) {
		t.Error("a page of an anonymous mapping is not supplied")
	}
	if d.k.PageIn(a, d.cpu.Fault(arch.AccessRead, 0x10)) {
		t.Error("a page is supplied where nothing is mapped")
	}
}

func TestReachesMemory(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	d.write(d.memory, []byte("/proc/self/mem\x00"))
	fd := d.callResult(unix.SYS_OPEN, d.memory, unix.O_RDWR)
	call := func(number, fd uint64) *arch.Regs {
		r := &arch.Regs{}
		r.GPR[arch.RAX], r.GPR[arch.RDI] = number, fd
		return r
	}
	for _, c := range []struct {
		r    *arch.Regs
		want bool
	}{
		{call(unix.SYS_PREAD64, fd), true},
		{call(unix.SYS_WRITE, 1), false},
		{call(unix.SYS_WRITE, 77), false},
		{call(unix.SYS_GETPID, fd), false},
	} {
		if got := a.ReachesMemory(c.r); got != c.want {
			t.Errorf("call %d on descriptor %d: %v, want %v", c.r.GPR[arch.RAX], c.r.GPR[arch.RDI], got, c.want)
		}
	}
}

// TestSteps: single steps and hardware breakpoints of a tracee stop it with a SIGTRAP.
func TestSteps(t *testing.T) {
	d := newDriven(t)
	child := arch.ThreadID(d.callResult(unix.SYS_FORK))
	c := d.k.Task(child)
	request := func(number, addr, data uint64) {
		t.Helper()
		if got := d.callResult(unix.SYS_PTRACE, number, uint64(child), addr, data); linux.Failed(got) {
			t.Fatalf("request %d: %s", number, linux.ResultText(got))
		}
	}
	traps := func(what string) {
		t.Helper()
		d.run()
		if c.state != traced || c.stop.code != int32(unix.SIGTRAP) {
			t.Fatalf("%s does not stop the thread with SIGTRAP", what)
		}
	}
	request(unix.PTRACE_ATTACH, 0, 0)
	request(unix.PTRACE_SINGLESTEP, 0, 0)
	if !c.IsStepped() {
		t.Fatal("the thread is not stepped")
	}
	c.Load()
	if !c.AtInstruction() {
		t.Fatal("the thread stops before its instruction")
	}
	c.AfterInstruction(arch.Stop{Reason: arch.StopBudget})
	if c.isSignalReady() {
		t.Error("an instruction that has not retired ends the step")
	}
	c.AfterInstruction(arch.Stop{Reason: arch.StopBudget, Instructions: 1})
	traps("a step")
	// A breakpoint at the next instruction, and one at a store of 4 bytes.
	const debugRegisters = 848
	request(unix.PTRACE_POKEUSR, debugRegisters, syscallAddr+2)
	request(unix.PTRACE_POKEUSR, debugRegisters+8, d.memory)
	request(unix.PTRACE_POKEUSR, debugRegisters+56, 1|4|0xd<<20)
	request(unix.PTRACE_CONT, 0, 0)
	c.Load()
	if c.AtInstruction() {
		t.Fatal("the thread passes a breakpoint")
	}
	traps("a breakpoint")
	request(unix.PTRACE_POKEUSR, debugRegisters+56, 4|0xd<<20)
	request(unix.PTRACE_CONT, 0, 0)
	c.Load()
	d.cpu.NextOperands = []arch.Operand{{Addr: arch.Addr(d.memory + 2), Size: 1, Write: true}}
	if !c.AtInstruction() {
		t.Fatal("the thread stops at a breakpoint that is disabled")
	}
	d.cpu.NextIsOver = true
	c.AfterInstruction(arch.Stop{Reason: arch.StopBudget, Instructions: 1})
	if c.isSignalReady() {
		t.Error("a repeated instruction stops before its last iteration")
	}
	d.cpu.NextIsOver = false
	c.AfterInstruction(arch.Stop{Reason: arch.StopBudget, Instructions: 1})
	traps("a store to a watched word")
}

func TestShortage(t *testing.T) {
	d := newDriven(t)
	if got := d.callResult(unix.SYS_MMAP, 0, 1<<40, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0); got != linux.Failure(unix.ENOMEM) {
		t.Fatalf("a mapping of 1 TiB: %s, want ENOMEM", linux.ResultText(got))
	}
	s := d.k.Shortage()
	if s.Bound != BoundPromise || s.Errno != unix.ENOMEM || !strings.HasPrefix(s.Request, "mmap(") || s.Killed {
		t.Errorf("the shortage is %+v", s)
	}
	if PromiseBytes(1<<50) != 1<<50 || PromiseBytes(0) == 0 {
		t.Error("PromiseBytes is below the memory of the machine")
	}
}

func TestInvalidInstruction(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	a.Load()
	d.stop(a, d.cpu.Exception(vectorInvalidOpcode))
	x := d.k.InvalidInstruction()
	if x == nil || x.Path != "/bin/prog" || len(x.Code) != longestInstruction {
		t.Fatalf("the invalid instruction is %+v", x)
	}
	if _, signal := d.k.Status(); !d.k.Done() || signal != int(unix.SIGILL) {
		t.Errorf("the program has ended with signal %d, want SIGILL", signal)
	}
}

// TestMissingCall: a call that the machine does not have ends the run.
func TestMissingCall(t *testing.T) {
	d := newDriven(t)
	d.call(d.first(), unix.SYS_IO_URING_SETUP, 1, d.memory)
	missing := slices.ContainsFunc(Syscalls(), func(s SyscallInfo) bool {
		return s.Number == unix.SYS_IO_URING_SETUP && s.Support == Missing
	})
	if missing != (d.k.Fatal() != "") {
		t.Errorf("missing: %v, the run ends because of %q", missing, d.k.Fatal())
	}
	for _, s := range Syscalls() {
		if s.Support.String() == "" || s.Support == Full && s.handler == nil {
			t.Errorf("%s: support %q, handler %v", s.Name, s.Support, s.handler != nil)
		}
	}
}

func TestMayRemovePages(t *testing.T) {
	d := newDriven(t)
	a := d.first()
	for _, c := range []struct {
		number, rdi, rdx, r10 uint64
		want                  bool
	}{
		{unix.SYS_MUNMAP, 0, 0, 0, true},
		{unix.SYS_GETPID, 0, 0, 0, false},
		{unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_THREAD, 0, 0, false},
		{unix.SYS_CLONE, 0, 0, 0, true},
		{unix.SYS_FORK, 0, 0, 0, true},
		{unix.SYS_EXIT, 0, 0, 0, true}, // of the last thread
		{unix.SYS_MMAP, 0, 0, unix.MAP_ANONYMOUS, false},
		{unix.SYS_MMAP, 0, 0, unix.MAP_ANONYMOUS | unix.MAP_FIXED, true},
		{unix.SYS_MPROTECT, 0, unix.PROT_READ | unix.PROT_WRITE, 0, false},
		{unix.SYS_MPROTECT, 0, unix.PROT_READ, 0, true},
		{unix.SYS_MADVISE, 0, 0, 0, false},
	} {
		r := &arch.Regs{}
		r.GPR[arch.RAX], r.GPR[arch.RDI], r.GPR[arch.RDX], r.GPR[arch.R10] = c.number, c.rdi, c.rdx, c.r10
		if got := a.MayRemovePages(r); got != c.want {
			t.Errorf("%s with %#x, %#x, %#x: %v, want %v", linux.Name(c.number), c.rdi, c.rdx, c.r10, got, c.want)
		}
	}
}
