package constraints

import (
	"math/big"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// Choices counts the ways to place writes before or after a pair of a write and the read that sees
// it (H3, theorem 1).
type Choices struct {
	// Writes is N, Cores is C: those with any write.
	Writes, Cores int
	// Free is 2^N, Ordered the product of (m+1) over the cores, m their writes, and
	// Bound (N/C+1)^C rounded up, which it does not exceed.
	Free, Ordered, Bound *big.Int
}

// CountChoices counts them for the writes of a trace.
func CountChoices(t *model.Trace) Choices {
	per := map[arch.CoreID]int64{}
	n := 0
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind.Writes() {
			per[e.Core]++
			n++
		}
	}
	c := Choices{Writes: n, Cores: len(per), Free: new(big.Int).Lsh(big.NewInt(1), uint(n)), Ordered: big.NewInt(1), Bound: big.NewInt(1)}
	for _, m := range per {
		c.Ordered.Mul(c.Ordered, big.NewInt(m+1))
	}
	if len(per) == 0 {
		return c
	}
	// (N/C+1)^C = (N+C)^C / C^C
	cores := big.NewInt(int64(len(per)))
	top := new(big.Int).Exp(big.NewInt(int64(n+len(per))), cores, nil)
	bottom := new(big.Int).Exp(cores, cores, nil)
	rest := new(big.Int)
	c.Bound.DivMod(top, bottom, rest)
	if rest.Sign() > 0 {
		c.Bound.Add(c.Bound, big.NewInt(1))
	}
	return c
}
