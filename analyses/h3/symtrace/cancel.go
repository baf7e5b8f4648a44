package symtrace

import (
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// A thread that is cancelled is unwound by code that is not followed: it continues where its latest
// clean-up was registered, with the registers that a jmp_buf holds, or ends.

// interruptible are calls that a signal ends.
var interruptible = map[uint64]bool{
	unix.SYS_READ: true, unix.SYS_RECVFROM: true, unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true, unix.SYS_RT_SIGTIMEDWAIT: true,
	unix.SYS_FUTEX: true, unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true,
}

// nextCancelHandler reports whether the path continues in the handler of the cancellation signal,
// and where.
func (w *threadExec) nextCancelHandler() (uint64, bool) {
	pc, ok := w.path.PCAt(w.at)
	return pc, ok && w.pass.image.Functions[pc].Role == Cancel
}

// interruptedState is a thread where a signal came.
type interruptedState struct {
	state   vex.State
	cells   [vex.StateSize]symmem.Cell
	unknown int
	// restarts: the thread was in a system call, whose number is in its register.
	restarts bool
}

// handlerReturn is where the handler returns to, for the code by which it does so.
const handlerReturn = ownReturn + 0x1000

// The frame of a handler (arch/x86/include/asm/sigframe.h), below the red zone and the
// state of the floating-point unit.
const (
	redZone     = 128
	floatState  = 512
	contextSize = 304
	frameInfo   = 8 + contextSize
	frameSize   = frameInfo + signalInfo
	infoCode    = 8
	infoPID     = 16
	siTKill     = -6
)

// enterCancelHandler lets the thread enter that handler. It enters it as soon as the signal is
// sent, so the signal had not been sent at the thread's previous event. The registers in the signal
// frame are not in memory: the handler does not read them.
func (w *threadExec) enterCancelHandler(pc uint64) error {
	w.inSyscall = true // where the thread is, and no instruction later
	before := w.loadWord(w.cancelObject())
	w.inSyscall = false
	if err := w.addCondition(w.pass.pool.Eq(before, w.pass.pool.Word(0, wordBits))); err != nil {
		return err
	}
	w.addEvent(model.Event{Kind: model.Take, Object: w.pass.objectID(w.cancelObject())}, false)
	w.signalFrames = append(w.signalFrames[:len(w.signalFrames):len(w.signalFrames)], interruptedState{
		w.machine.State, w.cells, w.symbolicBytes, w.syscallInterrupted,
	})
	w.syscallInterrupted = false
	stack := w.machine.State.Word(offsetRSP) - redZone - floatState
	stack = (stack&^63-frameSize)&^15 - 8
	info := make([]byte, signalInfo)
	code := int32(siTKill)
	binary.LittleEndian.PutUint32(info, signalCancel)
	binary.LittleEndian.PutUint32(info[infoCode:], uint32(code))
	binary.LittleEndian.PutUint32(info[infoPID:], uint32(w.pass.threads[0].ID))
	w.memory.Write(stack, wordBytes(handlerReturn))
	w.memory.Write(stack+frameInfo, info)
	for offset, v := range map[int]uint64{
		offsetRSP: stack, offsetRDI: signalCancel, vex.OffsetRAX + 8*6: stack + frameInfo, vex.OffsetRAX + 8*2: stack + 8, vex.OffsetRIP: pc,
	} {
		w.clearSymbols(offset, offset+8)
		w.machine.State.SetWord(offset, v)
	}
	return nil
}

// returnFromSignal is rt_sigreturn(2): a system call that the signal has interrupted is made
// again (SA_RESTART), or fails.
func (w *threadExec) returnFromSignal() error {
	n := len(w.signalFrames)
	if n == 0 {
		return errNoMeaning(unix.SYS_RT_SIGRETURN)
	}
	i := w.signalFrames[n-1]
	w.signalFrames, w.inSyscall = w.signalFrames[:n-1], false
	w.machine.State, w.cells, w.symbolicBytes = i.state, i.cells, i.unknown
	if !i.restarts {
		return nil
	}
	const syscallBytes = 2
	at := w.currentPC() - syscallBytes
	if pc, _ := w.path.PCAt(w.at); pc != at {
		return w.completeSyscall(errno(unix.EINTR))
	}
	w.machine.State.SetWord(vex.OffsetRIP, at)
	return nil
}

// jumpRegisters are the registers of a jmp_buf of glibc; the second, and the last two,
// are mangled.
var jumpRegisters = [...]int{
	vex.OffsetRAX + 8*3, vex.OffsetRAX + 8*5, vex.OffsetRAX + 8*12, vex.OffsetRAX + 8*13, vex.OffsetRAX + 8*14, vex.OffsetRAX + 8*15,
	offsetRSP, vex.OffsetRIP,
}

const (
	mangled     = 1<<1 | 1<<6 | 1<<7
	mangledBy   = 17   // bits, PTR_MANGLE
	guardOffset = 0x30 // of the thread pointer
)

// unwindToCleanup continues at the latest clean-up, or ends the thread.
func (w *threadExec) unwindToCleanup(c *functionCall) error {
	n := len(w.cleanups)
	if n == 0 {
		c.Role = StopThread
		return w.endInCall(c)
	}
	var buffer [8 * len(jumpRegisters)]byte
	var guard [8]byte
	if !w.memory.Read(w.cleanups[n-1], buffer[:]) || !w.memory.Read(w.threadPointer()+guardOffset, guard[:]) {
		return errOffPath{"its stack would be unwound to an address that depends on the schedule", true}
	}
	state := w.machine.State
	for i, offset := range jumpRegisters {
		v := symmem.ValueOf(buffer[8*i : 8*i+8]).Lo
		if mangled>>i&1 != 0 {
			v = bits.RotateLeft64(v, -mangledBy) ^ symmem.ValueOf(guard[:]).Lo
		}
		w.clearSymbols(offset, offset+8)
		w.machine.State.SetWord(offset, v)
	}
	c.Return = w.currentPC()
	if c.returnAt, c.returned = w.path.FindBlock(w.path.Advance(w.at, 1), c.Return); !c.returned {
		w.machine.State = state
		w.noteLastCall(c)
		w.endPath(InCall)
		return nil
	}
	w.cleanups, w.signalFrames = w.cleanups[:n-1], nil
	w.Calls = append(w.Calls, c.Call)
	w.sinceCall, w.at = 0, c.returnAt
	w.setRegister(vex.OffsetRAX, w.pass.pool.Word(1, 64))
	return nil
}

// changeCleanups registers a clean-up, or takes back the latest.
func (w *threadExec) changeCleanups(c *functionCall) error {
	if c.Role == Unregister {
		w.cleanups = w.cleanups[:max(0, len(w.cleanups)-1)]
	} else {
		at, err := w.constantArgument(1)
		if err != nil {
			return err
		}
		w.cleanups = append(w.cleanups[:len(w.cleanups):len(w.cleanups)], at)
	}
	w.returnFromCall(c, w.pass.pool.Word(0, 64))
	return nil
}
