package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The frame of a handler (arch/x86/include/asm/sigframe.h, rt_sigframe): the restorer's address, a
// ucontext, a siginfo; the state of x87, SSE and AVX lies above it.
const (
	frameUcontext = 8
	frameInfo     = frameUcontext + ucSize
	frameSize     = frameInfo + 128

	ucFlags    = 0
	ucStack    = 16
	ucContext  = 40
	ucSigmask  = ucContext + 256
	ucSize     = ucSigmask + 8
	scFPState  = ucContext + 23*8
	redZone    = 128
	userCS     = 0x33
	userSS     = 0x2b
	ucFPXState = 1 // UC_FP_XSTATE
	ucSigSS    = 2 // UC_SIGCONTEXT_SS
	ucStrictSS = 4 // UC_STRICT_RESTORE_SS

	flagDF = 0x400
	flagTF = 0x100
	flagRF = 0x10000
	// flagsUser are the flags that a handler may change in its frame.
	flagsUser = 0x1 | 0x4 | 0x10 | 0x40 | 0x80 | flagTF | flagDF | 0x800 | flagRF | 0x40000
)

// contextOrder is the order of registers in struct sigcontext.
var contextOrder = [16]int{
	arch.R8, arch.R9, arch.R10, arch.R11, arch.R12, arch.R13, arch.R14, arch.R15,
	arch.RDI, arch.RSI, arch.RBP, arch.RBX, arch.RDX, arch.RAX, arch.RCX, arch.RSP,
}

// onAltStack reports whether sp is on the alternate signal stack.
func (t *Task) onAltStack(sp uint64) bool {
	base := t.altStack.Base
	return t.altStack.Size > 0 && sp > base && sp-base <= t.altStack.Size
}

// pushFrame builds the frame and sets the registers for the handler. It fails if the stack cannot
// be written.
func (t *Task) pushFrame(i sigInfo, a sigAction, saved sigset) bool {
	if a.Flags&saRestorer == 0 {
		return false // as on real x86-64 Linux
	}
	sp := t.regs.GPR[arch.RSP]
	stack := t.altStackAt(sp)
	if a.Flags&saOnStack != 0 && t.altStack.Size > 0 && !t.onAltStack(sp) {
		sp = t.altStack.Base + t.altStack.Size
	} else {
		sp -= redZone
	}
	if t.altStack.Flags&ssAutodisarm != 0 {
		t.altStack = sigStack{} // whichever stack the handler runs on
	}
	fp := (sp - t.k.frameStateSize()) &^ 63
	sp = (fp-frameSize)&^15 - 8

	frame := make([]byte, frameSize)
	binary.LittleEndian.PutUint64(frame, a.Restorer)
	t.putContext(frame[frameUcontext:], stack, saved, fp)
	copy(frame[frameInfo:], i[:])
	if t.copyOut(arch.Addr(fp), t.k.frameState()) != 0 || t.copyOut(arch.Addr(sp), frame) != 0 {
		return false
	}
	t.k.setLoadedState(initialState())
	t.regs.GPR[arch.RSP] = sp
	t.regs.RIP = a.Handler
	t.regs.RFLAGS &^= flagDF | flagTF | flagRF
	t.regs.GPR[arch.RAX] = 0
	t.regs.GPR[arch.RDI] = uint64(i.number())
	t.regs.GPR[arch.RSI] = sp + frameInfo
	t.regs.GPR[arch.RDX] = sp + frameUcontext
	t.dirty = true
	return true
}

// putContext writes the ucontext of the interrupted thread.
func (t *Task) putContext(uc []byte, stack sigStack, saved sigset, fp uint64) {
	put := func(off int, v uint64) { binary.LittleEndian.PutUint64(uc[off:], v) }
	flags := uint64(ucSigSS | ucStrictSS)
	if t.k.hasXSAVE() {
		flags |= ucFPXState
	}
	put(ucFlags, flags)
	put(ucStack, stack.Base)
	binary.LittleEndian.PutUint32(uc[ucStack+8:], uint32(stack.Flags))
	put(ucStack+16, stack.Size)
	for n, r := range contextOrder {
		put(ucContext+8*n, t.regs.GPR[r])
	}
	put(ucContext+16*8, t.regs.RIP)
	put(ucContext+17*8, t.regs.RFLAGS)
	put(ucContext+18*8, userCS|userSS<<48)
	put(ucContext+19*8, t.trap.errorCode)
	put(ucContext+20*8, t.trap.number)
	put(ucContext+21*8, uint64(saved))
	put(ucContext+22*8, t.trap.address)
	put(scFPState, fp)
	put(ucSigmask, uint64(saved))
}

func sysRtSigreturn(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	uc := make([]byte, ucSize)
	if t.copyIn(arch.Addr(t.regs.GPR[arch.RSP]-8+frameUcontext), uc) != 0 {
		t.forceSignal(signalInfo(unix.SIGSEGV, siKernel))
		return 0, errNoReturn
	}
	get := func(off int) uint64 { return binary.LittleEndian.Uint64(uc[off:]) }
	for n, r := range contextOrder {
		t.regs.GPR[r] = get(ucContext + 8*n)
	}
	t.regs.RIP = get(ucContext + 16*8)
	t.regs.RFLAGS = t.regs.RFLAGS&^flagsUser | get(ucContext+17*8)&flagsUser
	t.mask = sigset(get(ucSigmask)) &^ unblockable
	t.origRAX, t.restartBlock = noCall, nil
	t.Load()
	if !t.restoreFrameState(get(scFPState)) {
		t.forceSignal(signalInfo(unix.SIGSEGV, siKernel))
		return 0, errNoReturn
	}
	// Errors here are ignored, as in Linux.
	_ = t.setAltStack(arch.Addr(get(ucStack)), int32(binary.LittleEndian.Uint32(uc[ucStack+8:])), get(ucStack+16))
	return 0, errNoReturn
}
