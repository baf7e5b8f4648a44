package symtrace

import (
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// A thread that is cancelled is unwound, by code that is not followed: it comes to the
// place where the latest of its clean-ups was registered, whose registers are in a
// jmp_buf, or is over.

// interruptible are calls that a signal ends.
var interruptible = map[uint64]bool{
	unix.SYS_READ: true, unix.SYS_RECVFROM: true, unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true, unix.SYS_RT_SIGTIMEDWAIT: true,
	unix.SYS_FUTEX: true, unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true,
}

// cancelled tells that the path goes on in the handler of the signal that cancels.
func (w *walker) cancelled() (uint64, bool) {
	pc, ok := w.path.pc(w.at)
	return pc, ok && w.b.image.Functions[pc].Role == Cancel
}

// interrupted is a thread where a signal came.
type interrupted struct {
	state   vex.State
	cells   [vex.StateSize]cell
	unknown int
	// restarts tells that it was in a system call, whose number is in its register.
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

// interrupt has the thread in that handler. It comes there as soon as the signal is
// sent: so it was not when the thread did what it did last. What the frame has of registers is not in
// memory: the handler does not look at it.
func (w *walker) interrupt(pc uint64) error {
	w.calling = true // where the thread is, and no instruction later
	before := w.word(w.cancelObject())
	w.calling = false
	if err := w.condition(w.b.pool.Eq(before, w.b.pool.Word(0, wordBits))); err != nil {
		return err
	}
	w.add(model.Event{Kind: model.Take, Object: w.b.objectID(w.cancelObject())}, false)
	w.signalled = append(w.signalled[:len(w.signalled):len(w.signalled)], interrupted{
		w.machine.State, w.cells, w.unknown, w.restarts,
	})
	w.restarts = false
	stack := w.machine.State.Word(offsetRSP) - redZone - floatState
	stack = (stack&^63-frameSize)&^15 - 8
	info := make([]byte, signalInfo)
	code := int32(siTKill)
	binary.LittleEndian.PutUint32(info, signalCancel)
	binary.LittleEndian.PutUint32(info[infoCode:], uint32(code))
	binary.LittleEndian.PutUint32(info[infoPID:], uint32(w.b.walkers[0].ID))
	w.mem.write(stack, wordBytes(handlerReturn))
	w.mem.write(stack+frameInfo, info)
	for offset, v := range map[int]uint64{
		offsetRSP: stack, offsetRDI: signalCancel, vex.OffsetRAX + 8*6: stack + frameInfo, vex.OffsetRAX + 8*2: stack + 8, vex.OffsetRIP: pc,
	} {
		w.clear(offset, offset+8)
		w.machine.State.SetWord(offset, v)
	}
	return nil
}

// goesBack is rt_sigreturn(2): a system call that the signal has interrupted is made
// again (SA_RESTART), or fails.
func (w *walker) goesBack() error {
	n := len(w.signalled)
	if n == 0 {
		return meaningless(unix.SYS_RT_SIGRETURN)
	}
	i := w.signalled[n-1]
	w.signalled, w.calling = w.signalled[:n-1], false
	w.machine.State, w.cells, w.unknown = i.state, i.cells, i.unknown
	if !i.restarts {
		return nil
	}
	const syscallBytes = 2
	at := w.pc() - syscallBytes
	if pc, _ := w.path.pc(w.at); pc != at {
		return w.over(errno(unix.EINTR))
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

// unwind goes on where the latest clean-up is, or ends the thread.
func (w *walker) unwind(c *called) error {
	n := len(w.cleanups)
	if n == 0 {
		c.Role = StopThread
		return w.leaves(c)
	}
	var buffer [8 * len(jumpRegisters)]byte
	var guard [8]byte
	if !w.mem.read(w.cleanups[n-1], buffer[:]) || !w.mem.read(w.pointer()+guardOffset, guard[:]) {
		return errWrong{"it would be unwound to what is not known", true}
	}
	state := w.machine.State
	for i, offset := range jumpRegisters {
		v := valueOf(buffer[8*i : 8*i+8]).Lo
		if mangled>>i&1 != 0 {
			v = bits.RotateLeft64(v, -mangledBy) ^ valueOf(guard[:]).Lo
		}
		w.clear(offset, offset+8)
		w.machine.State.SetWord(offset, v)
	}
	c.Return = w.pc()
	if c.end, c.over = w.path.find(w.path.after(w.at, 1), c.Return); !c.over {
		w.machine.State = state
		w.last(c)
		w.finish(InCall)
		return nil
	}
	w.cleanups, w.signalled = w.cleanups[:n-1], nil
	w.Calls = append(w.Calls, c.Call)
	w.since, w.at = 0, c.end
	w.setRegister(vex.OffsetRAX, w.b.pool.Word(1, 64))
	return nil
}

// cleanup registers a clean-up, or takes back the latest.
func (w *walker) cleanup(c *called) error {
	if c.Role == Unregister {
		w.cleanups = w.cleanups[:max(0, len(w.cleanups)-1)]
	} else {
		at, err := w.known(1)
		if err != nil {
			return err
		}
		w.cleanups = append(w.cleanups[:len(w.cleanups):len(w.cleanups)], at)
	}
	w.returns(c, w.b.pool.Word(0, 64))
	return nil
}
