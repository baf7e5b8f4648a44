package preconditions_test

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// BenchmarkCheck checks an input against figure 5's preconditions, and against a thousand
// terms about bytes of a file.
func BenchmarkCheck(b *testing.B) {
	s, p := figure4()
	s.Terms = preconditions.Simplify(p, s.Terms, substitutePins, preconditions.Limits{Steps: preconditions.DefaultLimit})
	p = symbolic.NewPool()
	many := &preconditions.Set{Args: 4}
	for i := range 1000 {
		x, y := p.Symbol(fmt.Sprintf("stdin[%d]", i), 8), p.Symbol(fmt.Sprintf("stdin[%d]", i+1), 8)
		many.Terms = append(many.Terms, p.ULE(p.Add(p.ZeroExt(x, 32), p.Mul(p.ZeroExt(y, 32), p.Word(3, 32))), p.Word(1000, 32)))
	}
	stdin := make(content, 2000)
	in := &preconditions.Input{
		Args: []string{"divide", "2", "1000", "8"}, Open: func(string) preconditions.Content { return stdin },
	}
	for name, set := range map[string]*preconditions.Set{"figure5": s, "1000": many} {
		c, err := preconditions.NewChecker(set)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if failed, shape := c.Check(in); failed >= 0 || !shape {
					b.Fatal(failed, shape)
				}
			}
		})
	}
}
