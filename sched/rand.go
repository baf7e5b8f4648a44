package sched

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// A stream is a seeded sequence of random numbers: plain data, so that a copy
// goes on as the original does. All arithmetic is on integers, whose results
// are the same on every host.
type stream struct {
	source rand.PCG
}

// newStream returns the stream of a seed for one purpose. Streams of different
// purposes are independent.
func newStream(seed, purpose uint64) stream {
	return stream{*rand.NewPCG(mix(seed), mix(seed^mix(purpose)))}
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014): close seeds give distant states.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a number from 0 to n-1, uniform but for a bias of n/2^64.
func (s *stream) below(n uint64) uint64 {
	high, _ := bits.Mul64(s.source.Uint64(), n)
	return high
}

// chance is true with probability p.
func (s *stream) chance(p share) bool {
	return s.source.Uint64()>>32 < uint64(p)
}

// upToShare returns a uniform part of f of x. What is left of the last unit
// counts as a chance of one more, so that small x are not always rounded to 0.
func (s *stream) upToShare(f share, x uint64) uint64 {
	draw := s.source.Uint64()
	part, _ := bits.Mul64(draw, uint64(f)+1)
	high, low := bits.Mul64(part, x)
	low, carry := bits.Add64(low, draw&math.MaxUint32, 0)
	return (high+carry)<<32 | low>>32
}

// geometric returns a number from 1 on, geometrically distributed around mean:
// the number of trials up to the first success when each succeeds with
// probability 1/mean.
func (s *stream) geometric(mean uint64) uint64 {
	if mean <= 1 {
		return 1
	}
	// 1 + floor(E) for an exponential E is geometric; its mean is the given
	// one when that of E is 1/ln(mean/(mean-1)), of which these are the first
	// terms of the series, in units of 2^-16.
	scale := mean<<16 - 1<<15 - 1<<16/12/mean - 1<<16/24/mean/mean
	high, low := bits.Mul64(scale, s.exponential())
	return 1 + (high<<32 | low>>32)
}

// exponential returns an exponentially distributed number of mean 1, in units
// of 2^-16: -ln(u) for a uniform u between 0 and 1. The binary logarithm comes
// bit by bit from squaring.
func (s *stream) exponential() uint64 {
	u := s.source.Uint64() | 1
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

// A share is a fraction from 0 to 1 in units of 2^-32.
type share uint64

func newShare(fraction float64) share { return share(fraction * (1 << 32)) }

// of returns the share of x, rounded down.
func (f share) of(x uint64) uint64 {
	high, low := bits.Mul64(x, uint64(f))
	return high<<32 | low>>32
}
