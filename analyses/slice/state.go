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
