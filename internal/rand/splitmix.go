package rand

import "math/bits"

// SplitMix is the generator SplitMix64 (G. Steele, D. Lea and C. Flood, Fast splittable
// pseudorandom number generators, OOPSLA 2014). Its value is its whole state; the value that it
// begins with is the seed.
type SplitMix uint64

// increment is added to the state with each number: 2^64 divided by the golden ratio.
const increment = 0x9e3779b97f4a7c15

// Uint64 returns the next number of the sequence.
func (s *SplitMix) Uint64() uint64 {
	state := uint64(*s)
	*s += increment
	return Mix(state)
}

// Below returns a number from 0 to n-1, uniform except for a bias of n/2^64. It takes the high
// bits of a product; n must not be 0.
func (s *SplitMix) Below(n uint64) uint64 {
	high, _ := bits.Mul64(s.Uint64(), n)
	return high
}

// Remainder returns a number from 0 to n-1, uniform except for a bias of n/2^64. It takes the
// remainder of a division; n must be greater than 0.
func (s *SplitMix) Remainder(n int) int { return int(s.Uint64() % uint64(n)) }

// Chance reports whether an event of a probability from 0 to 1 happens this time.
func (s *SplitMix) Chance(probability Share) bool { return s.Uint64()>>32 < uint64(probability) }

// Mix returns the number that SplitMix64 draws in a state. States that are close to each other
// give numbers that are not.
func Mix(state uint64) uint64 {
	z := state + increment
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
