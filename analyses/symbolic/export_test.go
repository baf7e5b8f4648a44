package symbolic

import "math/rand/v2"

// Twins is a random expression of n bits, simplified and not.
func Twins(r *rand.Rand, n, depth int) (simple, plain *Expr) {
	e := newTwins().drawExpr(r, n, depth)
	return e.simple, e.plain
}

// DrawValue is a random number.
func DrawValue(r *rand.Rand, n int) Value { return drawValue(r, n) }
