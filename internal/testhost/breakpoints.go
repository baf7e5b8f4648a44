package testhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// lacks is an environment variable: a list, with commas, of features of the host that tests
// are to do without although it has them.
const lacks = "HEDDLE_HOST_LACKS"

// NoBreakpoints is the reason for which tests do without hardware breakpoints.
const NoBreakpoints = "this host's processor does not stop programs at hardware breakpoints"

// HasBreakpoints reports whether the host's processor stops a program at the hardware
// breakpoints and watchpoints that a debugger sets through ptrace(2). Some virtual machines
// accept values of the debug registers and never stop. The answer is found once for
// a process. It is false, too, where HEDDLE_HOST_LACKS has the word "breakpoints".
func HasBreakpoints() (bool, error) {
	if slices.Contains(strings.Split(os.Getenv(lacks), ","), "breakpoints") {
		return false, nil
	}
	return triedBreakpoints()
}

var triedBreakpoints = sync.OnceValues(tryBreakpoints)

// Of struct user in <sys/user.h>: the debug registers, of 8 bytes each.
const (
	debugRegisters = 848
	debugStatus    = debugRegisters + 6*8
	debugControl   = debugRegisters + 7*8
)

// triedCode writes 8 bytes below the stack pointer, which slot 0 of the debug registers
// watches, then reaches the second NOP, at which slot 1 stops it. The last instruction stops
// it on every processor.
var triedCode = []byte{
	0x50,       // push %rax
	0x90, 0x90, // nop; nop
	0xcc, // int3
}

const (
	triedWrite  = 8 // bytes that the first instruction writes
	triedOffset = 2 // of the second NOP
	// Both slots enabled, the first for writes of 8 bytes (SDM vol. 3, 18.2.4).
	triedControl = 1<<0 | 1<<2 | 0b1001<<16
)

// tryBreakpoints runs code with a watchpoint and a breakpoint in a child, which is this
// program before its first instruction.
func tryBreakpoints() (bool, error) {
	runtime.LockOSThread() // ptrace(2): requests are those of the thread that is the tracer
	defer runtime.UnlockOSThread()
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	cmd := exec.Command(program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("trace a child: %w", err)
	}
	pid := cmd.Process.Pid
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		_ = cmd.Wait() // its status is that of the signal
	}()
	if err := awaitTrap(pid); err != nil {
		return false, err
	}
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return false, fmt.Errorf("read the child's registers: %w", err)
	}
	if _, err := unix.PtracePokeText(pid, uintptr(r.Rip), triedCode); err != nil {
		return false, fmt.Errorf("write code into the child: %w", err)
	}
	for _, set := range []struct {
		offset uintptr
		value  uint64
	}{{debugRegisters, r.Rsp - triedWrite}, {debugRegisters + 8, r.Rip + triedOffset}, {debugControl, triedControl}} {
		word := binary.LittleEndian.AppendUint64(nil, set.value)
		if _, err := unix.PtracePokeUser(pid, set.offset, word); err != nil {
			return false, nil //nolint:nilerr // a kernel without debug registers refuses them
		}
	}
	for slot := range 2 {
		if err := unix.PtraceCont(pid, 0); err != nil {
			return false, fmt.Errorf("continue the child: %w", err)
		}
		if err := awaitTrap(pid); err != nil {
			return false, err
		}
		status := make([]byte, 8)
		if _, err := unix.PtracePeekUser(pid, debugStatus, status); err != nil {
			return false, fmt.Errorf("read the child's debug registers: %w", err)
		}
		if binary.LittleEndian.Uint64(status)&(1<<slot) == 0 {
			return false, nil
		}
	}
	return true, nil
}

// awaitTrap waits until the child stops with SIGTRAP.
func awaitTrap(pid int) error {
	for {
		var status unix.WaitStatus
		switch _, err := unix.Wait4(pid, &status, 0, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the child: %w", err)
		case !status.Stopped() || status.StopSignal() != unix.SIGTRAP:
			return fmt.Errorf("the child did not stop with SIGTRAP: wait status %#x", uint32(status))
		default:
			return nil
		}
	}
}
