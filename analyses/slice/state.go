package slice

import (
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// stateWords is the number of words that hold one bit for each byte of the guest state.
const stateWords = (int(vex.StateSize) + 63) / 64

// stateBytes is a set of bytes of the guest state.
type stateBytes [stateWords]uint64

func (s *stateBytes) add(from, n int) {
	for i := from; i < from+n; i++ {
		s[i/64] |= 1 << (i % 64)
	}
}

// remove removes bytes and reports whether one was in the set.
func (s *stateBytes) remove(from, n int) bool {
	hit := false
	for i := from; i < from+n; i++ {
		if b := uint64(1) << (i % 64); s[i/64]&b != 0 {
			s[i/64] &^= b
			hit = true
		}
	}
	return hit
}

func (s *stateBytes) containsAny(from, n int) bool {
	for i := from; i < from+n; i++ {
		if s[i/64]>>(i%64)&1 != 0 {
			return true
		}
	}
	return false
}

func (s *stateBytes) intersects(o *stateBytes) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

func (s *stateBytes) addAll(o *stateBytes) {
	for i := range s {
		s[i] |= o[i]
	}
}

// liveState is the bytes of the guest state that the slice reads later.
type liveState struct {
	stateBytes
	// uses are, for each word with a byte in the set, the position of the last instruction that reads it.
	uses [stateSlots]int
}

// stateSlots is the number of words of 8 bytes of the guest state.
const stateSlots = stateWords * 8

// isEmpty reports whether no byte of a word is in the set.
func (s *stateBytes) isEmpty(slot int) bool { return s[slot/8]>>(slot%8*8)&0xff == 0 }

// use adds bytes that an instruction at a position reads.
func (l *liveState) use(from, n, at int) {
	for slot := from / 8; slot <= (from+n-1)/8; slot++ {
		if l.isEmpty(slot) || at > l.uses[slot] {
			l.uses[slot] = at
		}
	}
	l.add(from, n)
}

// kill removes bytes that an instruction writes. If one was in the set, it returns the position of the last instruction
// that reads it.
func (l *liveState) kill(from, n int) (until int, hit bool) {
	until = l.lastUse(from, n)
	return until, l.remove(from, n)
}

// lastUse is the position of the last instruction that reads the words of some bytes.
func (l *liveState) lastUse(from, n int) (until int) {
	for slot := from / 8; slot <= (from+n-1)/8; slot++ {
		if !l.isEmpty(slot) {
			until = max(until, l.uses[slot])
		}
	}
	return until
}

// isReadFrom reports whether an instruction at or after a position reads bytes of a set.
func (l *liveState) isReadFrom(o *stateBytes, at int) bool {
	for i := range o {
		both := l.stateBytes[i] & o[i]
		for k := i * 8; both != 0; k, both = k+1, both>>8 {
			if both&0xff != 0 && l.uses[k] >= at {
				return true
			}
		}
	}
	return false
}

// minus is the bytes that are not in another set.
func (s *stateBytes) minus(o *stateBytes) stateBytes {
	var out stateBytes
	for i := range s {
		out[i] = s[i] &^ o[i]
	}
	return out
}

// intersection is the bytes in both sets.
func (s *stateBytes) intersection(o *stateBytes) stateBytes {
	var out stateBytes
	for i := range s {
		out[i] = s[i] & o[i]
	}
	return out
}

// Registers by their numbers in instructions.
const (
	rax = 0
	rcx = 1
	rdx = 2
	rsp = 4
	rsi = 6
	rdi = 7
	r8  = 8
	r9  = 9
	r10 = 10
	r11 = 11
)

// argumentRegisters are those of functions, and callRegisters those of system calls, in
// order (System V ABI, AMD64 supplement, 3.2.3 and A.2.1).
var (
	argumentRegisters = [...]int{rdi, rsi, rdx, rcx, r8, r9}
	callRegisters     = [...]int{rdi, rsi, rdx, r10, r8, r9}
)

func registerOffset(n int) int { return vex.OffsetRAX + 8*n }

// roundingState is the rounding modes, which functions preserve unless it is their purpose to
// change them, such as that of fesetround(3): these have no models.
var roundingState = func() (r stateBytes) {
	r.add(vex.OffsetRound, 8)
	r.add(vex.OffsetFPRound, 8)
	return r
}()

// preservedState is the registers that a function preserves (ibidem, figure 3.4),
// resultState those in which it returns a result, and fixedState those that the layout of
// stack and code determines.
var preservedState, resultState, fixedState = func() (k, r, f stateBytes) {
	for _, n := range []int{3, 5, 12, 13, 14, 15} {
		k.add(registerOffset(n), 8)
	}
	r.add(registerOffset(rax), 8)
	r.add(registerOffset(rdx), 8)
	r.add(vex.OffsetXMM, 16)
	f.add(registerOffset(rsp), 8)
	f.add(vex.OffsetRIP, 8)
	f.add(vex.OffsetFS, 8)
	f.add(vex.OffsetGS, 8)
	f.add(vex.OffsetFTop, 4)
	f.add(vex.OffsetDFlag, 8)
	return k, r, f
}()
