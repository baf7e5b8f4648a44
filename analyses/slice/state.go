package slice

import (
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// stateWords is how many words the bytes of the guest state take as bits.
const stateWords = (int(vex.StateSize) + 63) / 64

// bytesOfState is a set of bytes of the guest state.
type bytesOfState [stateWords]uint64

func (s *bytesOfState) add(from, n int) {
	for i := from; i < from+n; i++ {
		s[i/64] |= 1 << (i % 64)
	}
}

// take removes bytes and tells whether one was there.
func (s *bytesOfState) take(from, n int) bool {
	hit := false
	for i := from; i < from+n; i++ {
		if b := uint64(1) << (i % 64); s[i/64]&b != 0 {
			s[i/64] &^= b
			hit = true
		}
	}
	return hit
}

func (s *bytesOfState) any(from, n int) bool {
	for i := from; i < from+n; i++ {
		if s[i/64]>>(i%64)&1 != 0 {
			return true
		}
	}
	return false
}

func (s *bytesOfState) meets(o *bytesOfState) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

func (s *bytesOfState) join(o *bytesOfState) {
	for i := range s {
		s[i] |= o[i]
	}
}

// without are the bytes that another set has not.
func (s *bytesOfState) without(o *bytesOfState) bytesOfState {
	var out bytesOfState
	for i := range s {
		out[i] = s[i] &^ o[i]
	}
	return out
}

// common are the bytes that both have.
func (s *bytesOfState) common(o *bytesOfState) bytesOfState {
	var out bytesOfState
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

// argumentRegisters are those of functions, and callRegisters those of system calls,
// in order (System V ABI, AMD64 supplement, 3.2.3 and A.2.1).
var (
	argumentRegisters = [...]int{rdi, rsi, rdx, rcx, r8, r9}
	callRegisters     = [...]int{rdi, rsi, rdx, r10, r8, r9}
)

func register(n int) int { return vex.OffsetRAX + 8*n }

// kept are the registers that a function gives back as they were (ibidem, figure 3.4),
// and results those in which it returns something; fixed are those that the layout of
// the stack and the code decide.
var kept, results, fixed = func() (k, r, f bytesOfState) {
	for _, n := range []int{3, 5, 12, 13, 14, 15} {
		k.add(register(n), 8)
	}
	r.add(register(rax), 8)
	r.add(register(rdx), 8)
	r.add(vex.OffsetXMM, 16)
	f.add(register(rsp), 8)
	f.add(vex.OffsetRIP, 8)
	f.add(vex.OffsetFS, 8)
	f.add(vex.OffsetGS, 8)
	f.add(vex.OffsetFTop, 4)
	f.add(vex.OffsetDFlag, 8)
	return k, r, f
}()
