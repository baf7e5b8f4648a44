// Package randtest draws the values on which tests of instructions run.
package randtest

import (
	"math"
	"math/rand/v2"
)

// Word draws a word, and likes the numbers at which things change: small ones and
// their negatives, powers of two and the numbers before them, and reals, one of 64
// bits or two of 32.
func Word(r *rand.Rand) uint64 {
	switch r.IntN(6) {
	case 0:
		return uint64(r.IntN(5)) - 2
	case 1:
		return 1<<r.IntN(64) - uint64(r.IntN(2))
	case 2:
		return math.Float64bits(r.NormFloat64() * math.Ldexp(1, r.IntN(40)-20))
	case 3:
		one := math.Float32bits(float32(r.NormFloat64()))
		return uint64(one)<<32 | uint64(math.Float32bits(float32(r.NormFloat64()*100)))
	default:
		return r.Uint64()
	}
}
