package rand

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// A Stream is a seeded sequence of random numbers (PCG of 128 bits; M. O'Neill, PCG: a family of
// simple fast space-efficient statistically good algorithms for random number generation, 2014).
type Stream struct {
	generator rand.PCG
}

// NewStream returns the stream of a seed for one purpose. Streams of different
// purposes are independent.
func NewStream(seed, purpose uint64) Stream {
	return Stream{*rand.NewPCG(Mix(seed), Mix(seed^Mix(purpose)))}
}

// Uint64 returns the next number of the sequence.
func (s *Stream) Uint64() uint64 { return s.generator.Uint64() }

// Below returns a number from 0 to n-1, uniform except for a bias of n/2^64.
func (s *Stream) Below(n uint64) uint64 {
	high, _ := bits.Mul64(s.generator.Uint64(), n)
	return high
}

// Chance reports whether an event of probability p happens this time.
func (s *Stream) Chance(p Share) bool {
	return s.generator.Uint64()>>32 < uint64(p)
}

// UpToShare returns a number from 0 to the share f of x, uniformly distributed. A fraction of a
// unit counts as a chance of one more, so that results for small x are not always rounded to 0.
func (s *Stream) UpToShare(f Share, x uint64) uint64 {
	draw := s.generator.Uint64()
	part, _ := bits.Mul64(draw, uint64(f)+1)
	high, low := bits.Mul64(part, x)
	low, carry := bits.Add64(low, draw&math.MaxUint32, 0)
	return (high+carry)<<32 | low>>32
}

// Geometric returns a geometrically distributed number of the given mean, 1 or greater: the
// number of trials up to the first success when each succeeds with probability 1/mean.
func (s *Stream) Geometric(mean uint64) uint64 {
	if mean <= 1 {
		return 1
	}
	// 1 + floor(E) for an exponential E is geometric; its mean is the given
	// one when that of E is 1/ln(mean/(mean-1)), of which these are the first
	// terms of the series, in units of 2^-16.
	scale := mean<<16 - 1<<15 - 1<<16/12/mean - 1<<16/24/mean/mean
	high, low := bits.Mul64(scale, s.exponentialSample())
	return 1 + (high<<32 | low>>32)
}

// exponentialSample returns an exponentially distributed number of mean 1, in units
// of 2^-16: -ln(u) for a uniform u between 0 and 1. The binary logarithm is
// computed bit by bit, by squaring.
func (s *Stream) exponentialSample() uint64 {
	u := s.generator.Uint64() | 1
	zeros := bits.LeadingZeros64(u)
	mantissa := u << zeros >> 32 // 1 to 2 in units of 2^-31
	var log uint64               // its logarithm in units of 2^-16
	for range 16 {
		mantissa = mantissa * mantissa >> 31
		log <<= 1
		if mantissa >= 1<<32 {
			mantissa >>= 1
			log |= 1
		}
	}
	const ln2 = 45426 // in units of 2^-16
	return (uint64(zeros+1)<<16 - log) * ln2 >> 16
}

// A Share is a fraction from 0 to 1 in units of 2^-32.
type Share uint64

// NewShare returns the share for a fraction from 0 to 1.
func NewShare(fraction float64) Share { return Share(fraction * (1 << 32)) }

// Of returns the share f of x, rounded down.
func (f Share) Of(x uint64) uint64 {
	high, low := bits.Mul64(x, uint64(f))
	return high<<32 | low>>32
}
