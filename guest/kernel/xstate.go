package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The state of x87, SSE and AVX as XSAVE stores it in the standard form (Intel SDM volume 1, section
// 13.4): an FXSAVE image, a header, the upper halves of the YMM registers.
const (
	xstateHeader = arch.FPSize
	xstateHigh   = xstateHeader + 64
	xstateSize   = xstateHigh + arch.YMMHighSize

	// Components of the state, as bits of XCR0.
	xfeatureX87 = 1
	xfeatureSSE = 2
	xfeatureAVX = 4
	xfeatures   = xfeatureX87 | xfeatureSSE | xfeatureAVX

	// Offsets in an FXSAVE image.
	fxMXCSR, fxStack, fxVectors, fxVectorsEnd = 24, 32, 160, 416
	// fxSoftware is where Linux has its own words (struct _fpx_sw_bytes).
	fxSoftware = 464

	reservedMXCSR = ^uint32(0xffff)
	startMXCSR    = 0x1f80
)

// initialFP is the floating-point state that programs and handlers start with:
// control word 0x37f, MXCSR 0x1f80.
var initialFP = [arch.FPSize]byte{0: 0x7f, 1: 0x03, fxMXCSR: startMXCSR & 0xff, fxMXCSR + 1: startMXCSR >> 8}

// hasXSAVE reports whether the processor has XSAVE, and with it AVX.
func (k *Kernel) hasXSAVE() bool {
	const osxsave = 1 << 27
	return k.cpu.CPUID(1, 0)[2]&osxsave != 0
}

// An xstate is the state of a thread. High is 0 on a processor without AVX.
type xstate struct {
	fp   [arch.FPSize]byte
	high [arch.YMMHighSize]byte
}

// loadedState reads the state of the thread that is loaded.
func (k *Kernel) loadedState() *xstate {
	var x xstate
	k.cpu.FP(&x.fp)
	k.cpu.YMMHigh(&x.high)
	return &x
}

func (k *Kernel) setLoadedState(x *xstate) {
	k.cpu.SetFP(&x.fp)
	k.cpu.SetYMMHigh(&x.high)
}

func initialState() *xstate { return &xstate{fp: initialFP} }

func (x *xstate) mxcsr() uint32 { return binary.LittleEndian.Uint32(x.fp[fxMXCSR:]) }

// inUse returns the components that differ from their initial state.
func (x *xstate) inUse() uint64 {
	features := uint64(0)
	if [5]byte(x.fp[:5]) != [5]byte(initialFP[:5]) || !isZero(x.fp[fxStack:fxVectors]) {
		features |= xfeatureX87
	}
	if !isZero(x.fp[fxVectors:fxVectorsEnd]) {
		features |= xfeatureSSE
	}
	if !isZero(x.high[:]) {
		features |= xfeatureAVX
	}
	return features
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// bytes returns the image of XSAVE, whose header has these components.
func (x *xstate) bytes(features uint64) []byte {
	b := make([]byte, xstateSize)
	copy(b, x.fp[:fxVectorsEnd])
	binary.LittleEndian.PutUint64(b[xstateHeader:], features)
	copy(b[xstateHigh:], x.high[:])
	return b
}

// headerFits reports whether XRSTOR accepts the header of an image in the standard form (Intel SDM
// volume 1, section 13.8.1). It does not examine the last bytes of the header, up to reserved.
func headerFits(header []byte, reserved int) bool {
	return binary.LittleEndian.Uint64(header)&^xfeatures == 0 && isZero(header[8:reserved])
}

// take sets the components that are wanted: to what an image of XSAVE has, or to the initial state if
// its header does not have them.
func (x *xstate) take(image []byte, wanted uint64) {
	initial := initialState()
	present := binary.LittleEndian.Uint64(image[xstateHeader:])
	source := func(feature uint64) []byte {
		if present&feature != 0 {
			return image
		}
		return initial.bytes(0)
	}
	if wanted&xfeatureX87 != 0 {
		from := source(xfeatureX87)
		copy(x.fp[:fxMXCSR], from)
		copy(x.fp[fxStack:fxVectors], from[fxStack:])
	}
	if wanted&xfeatureSSE != 0 {
		copy(x.fp[fxVectors:fxVectorsEnd], source(xfeatureSSE)[fxVectors:])
	}
	if wanted&xfeatureAVX != 0 {
		copy(x.high[:], source(xfeatureAVX)[xstateHigh:])
	}
}

// ---- signal frames -------------------------------------------------------------------

// The words of Linux in the image of a frame (uapi/asm/sigcontext.h, struct _fpx_sw_bytes).
const (
	fpMagic1, fpMagic2 = 0x46505853, 0x46505845
	fpMagic2Size       = 4
)

// frameStateSize is the size of the state in a signal frame.
func (k *Kernel) frameStateSize() uint64 {
	if k.hasXSAVE() {
		return xstateSize + fpMagic2Size
	}
	return arch.FPSize
}

// minSignalStack is the size of the largest signal frame, AT_MINSIGSTKSZ (arch/x86/kernel/signal.c,
// init_sigframe_size, without emulation of 32-bit programs).
func (k *Kernel) minSignalStack() uint64 {
	const padding, statePadding = 15, 63
	return (frameSize + padding + k.frameStateSize() + statePadding + 15) &^ 15
}

// frameState returns the state of the loaded thread for a signal frame.
func (k *Kernel) frameState() []byte {
	x := k.loadedState()
	if !k.hasXSAVE() {
		clear(x.fp[fxSoftware:]) // no extended state: no magic number
		return x.fp[:]
	}
	b := x.bytes(x.inUse() | xfeatureX87 | xfeatureSSE)
	le := binary.LittleEndian
	le.PutUint32(b[fxSoftware:], fpMagic1)
	le.PutUint32(b[fxSoftware+4:], xstateSize+fpMagic2Size)
	le.PutUint64(b[fxSoftware+8:], xfeatures)
	le.PutUint32(b[fxSoftware+16:], xstateSize)
	return le.AppendUint32(b, fpMagic2)
}

// restoreFrameState sets the state of the loaded thread to that at an address in a signal frame, 0: to
// the initial one. It returns false if there is none that the processor accepts, and the state is then
// the initial one (fpu__restore_sig).
func (t *Task) restoreFrameState(at uint64) bool {
	x, ok := initialState(), true
	if at != 0 {
		if ok = t.readFrameState(at, x); !ok {
			x = initialState()
		}
	}
	t.k.setLoadedState(x)
	return ok
}

func (t *Task) readFrameState(at uint64, x *xstate) bool {
	var fp [arch.FPSize]byte
	if t.copyIn(arch.Addr(at), fp[:]) != 0 {
		return false
	}
	extended, ok := t.frameIsExtended(at, fp[fxSoftware:])
	if !ok {
		return false
	}
	if !extended { // FXRSTOR
		x.fp = fp
		return at%16 == 0 && x.mxcsr()&reservedMXCSR == 0
	}
	image := make([]byte, xstateSize)
	if at%64 != 0 || t.copyIn(arch.Addr(at), image) != 0 || !headerFits(image[xstateHeader:], 24) {
		return false
	}
	features := binary.LittleEndian.Uint64(fp[fxSoftware+8:]) & xfeatures
	x.take(image, features)
	if features&(xfeatureSSE|xfeatureAVX) != 0 {
		copy(x.fp[fxMXCSR:], fp[fxMXCSR:][:4])
		if x.mxcsr()&reservedMXCSR != 0 {
			return false
		}
	}
	if features&xfeatureSSE == 0 { // from the initial state, with the registers
		binary.LittleEndian.PutUint32(x.fp[fxMXCSR:], startMXCSR)
	}
	return true
}

// frameIsExtended reports whether the state at an address in a signal frame is an image of XSAVE, and not
// only one of FXSAVE (check_xstate_in_sigframe). It fails if the end of the image cannot be read.
func (t *Task) frameIsExtended(at uint64, software []byte) (extended, ok bool) {
	le := binary.LittleEndian
	extendedSize, size := le.Uint32(software[4:]), le.Uint32(software[16:])
	if !t.k.hasXSAVE() || le.Uint32(software) != fpMagic1 || size < xstateHigh || size > xstateSize || size > extendedSize {
		return false, true
	}
	var magic [fpMagic2Size]byte
	if t.copyIn(arch.Addr(at+uint64(size)), magic[:]) != 0 {
		return false, false
	}
	return le.Uint32(magic[:]) == fpMagic2, true
}

// ---- ptrace ----------------------------------------------------------------------------

// traceeState reads a tracee's state.
func (t *Task) traceeState(c *Task) *xstate {
	c.Load()
	defer t.Load()
	return t.k.loadedState()
}

func (t *Task) setTraceeState(c *Task, x *xstate) {
	c.Load()
	defer t.Load()
	t.k.setLoadedState(x)
}

// setTraceeFP sets x87 and SSE of a tracee to an FXSAVE image (xfpregs_set).
func (t *Task) setTraceeFP(c *Task, image []byte) unix.Errno {
	x := t.traceeState(c)
	if len(image) != copy(x.fp[:], image) || len(image) != len(x.fp) || x.mxcsr()&reservedMXCSR != 0 {
		return unix.EINVAL
	}
	t.setTraceeState(c, x)
	return 0
}

// regset returns the register set NT_X86_XSTATE (copy_xstate_to_uabi_buf).
func (x *xstate) regset() []byte {
	features := x.inUse()
	if x.mxcsr() != startMXCSR {
		features |= xfeatureSSE
	}
	b := x.bytes(features)
	binary.LittleEndian.PutUint64(b[fxSoftware:], xfeatures)
	return b
}

// setTraceeRegset sets the state of a tracee to a register set NT_X86_XSTATE (copy_uabi_to_xstate).
func (t *Task) setTraceeRegset(c *Task, image []byte) unix.Errno {
	if len(image) != xstateSize {
		return unix.EFAULT
	}
	x := t.traceeState(c)
	if !headerFits(image[xstateHeader:], 64) {
		return unix.EINVAL
	}
	if binary.LittleEndian.Uint64(image[xstateHeader:]) != 0 {
		copy(x.fp[fxMXCSR:], image[fxMXCSR:][:4])
		if x.mxcsr()&reservedMXCSR != 0 {
			return unix.EINVAL
		}
	}
	x.take(image, xfeatures)
	t.setTraceeState(c, x)
	return 0
}
