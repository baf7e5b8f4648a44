package buffers

import "math/bits"

// generator is splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
type generator uint64

func newGenerator(seed uint64) generator { return generator(seed ^ 0x6d656d6d6f64656c) }

func (g *generator) next() uint64 {
	*g += 0x9e3779b97f4a7c15
	z := uint64(*g)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (g *generator) below(n uint64) uint64 {
	high, _ := bits.Mul64(g.next(), n)
	return high
}

// chance is true with the probability.
func (g *generator) chance(rate float64) bool { return g.next()>>32 < uint64(rate*(1<<32)) }
