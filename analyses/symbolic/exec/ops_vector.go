package exec

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// lane is lane i of lanes of n bits.
func lane(p *symbolic.Pool, e *symbolic.Expr, i, n int) *symbolic.Expr { return p.Extract(e, i*n, n) }

// assemble puts lanes together, the lowest first.
func assemble(p *symbolic.Pool, count int, f func(i int) *symbolic.Expr) *symbolic.Expr {
	e := f(0)
	for i := 1; i < count; i++ {
		e = p.Concat(f(i), e)
	}
	return e
}

type laneFunc func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr

// lanes makes an operation that does the same in each lane.
func lanes(n, count int, f laneFunc) opFunc {
	return func(t *operands) *symbolic.Expr {
		return assemble(t.Pool, count, func(i int) *symbolic.Expr {
			return f(t.Pool, lane(t.Pool, t.a(), i, n), lane(t.Pool, t.b(), i, n))
		})
	}
}

// spread makes a truth all ones or all zeros.
func spread(f laneFunc) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.SignExt(f(p, a, b), a.Bits) }
}

// choice is the operand for which a comparison holds.
func choice(f laneFunc) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Ite(f(p, a, b), a, b) }
}

func swapped(f laneFunc) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return f(p, b, a) }
}

type shape struct{ n, count int }

func (s shape) name(format string) string { return fmt.Sprintf(format, s.n, s.count) }

func vectorOps(named map[string]opFunc) {
	for _, s := range []shape{{8, 8}, {16, 4}, {32, 2}, {8, 16}, {16, 8}, {32, 4}, {64, 2}} {
		set := func(format string, f laneFunc) { named[s.name(format)] = lanes(s.n, s.count, f) }
		set("Add%dx%d", (*symbolic.Pool).Add)
		set("Sub%dx%d", (*symbolic.Pool).Sub)
		set("Mul%dx%d", (*symbolic.Pool).Mul)
		set("CmpEQ%dx%d", spread((*symbolic.Pool).Eq))
		set("CmpGT%dSx%d", spread(swapped((*symbolic.Pool).SLT)))
		set("Min%dUx%d", choice((*symbolic.Pool).ULT))
		set("Min%dSx%d", choice((*symbolic.Pool).SLT))
		set("Max%dUx%d", choice(swapped((*symbolic.Pool).ULT)))
		set("Max%dSx%d", choice(swapped((*symbolic.Pool).SLT)))
		s.shifts(named)
		s.interleaves(named)
		s.saturating(named)
	}
	named["GetMSBs8x16"], named["GetMSBs8x8"] = topBits(16), topBits(8)
	named["PermOrZero8x16"] = permuteOrZero
	narrowings(named)
}

func (s shape) shifts(named map[string]opFunc) {
	by := func(f laneFunc) opFunc {
		return func(t *operands) *symbolic.Expr {
			amount := resize(t.Pool, t.b(), s.n)
			return assemble(t.Pool, s.count, func(i int) *symbolic.Expr {
				return f(t.Pool, lane(t.Pool, t.a(), i, s.n), amount)
			})
		}
	}
	named[s.name("ShlN%dx%d")] = by((*symbolic.Pool).Shl)
	named[s.name("ShrN%dx%d")] = by((*symbolic.Pool).LShr)
	named[s.name("SarN%dx%d")] = by((*symbolic.Pool).AShr)
}

// interleaves take lanes of both, of the second operand first.
func (s shape) interleaves(named map[string]opFunc) {
	pick := func(which func(i int) (operand, lane int)) opFunc {
		return func(t *operands) *symbolic.Expr {
			return assemble(t.Pool, s.count, func(i int) *symbolic.Expr {
				operand, at := which(i)
				return lane(t.Pool, t.args[operand], at, s.n)
			})
		}
	}
	half := s.count / 2
	named[s.name("InterleaveLO%dx%d")] = pick(func(i int) (int, int) { return 1 - i%2, i / 2 })
	named[s.name("InterleaveHI%dx%d")] = pick(func(i int) (int, int) { return 1 - i%2, half + i/2 })
	named[s.name("CatEvenLanes%dx%d")] = pick(func(i int) (int, int) { return 1 - i/half, i % half * 2 })
	named[s.name("CatOddLanes%dx%d")] = pick(func(i int) (int, int) { return 1 - i/half, i%half*2 + 1 })
}

// saturating sums and differences without a sign.
func (s shape) saturating(named map[string]opFunc) {
	named[s.name("QAdd%dUx%d")] = lanes(s.n, s.count, func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr {
		sum := p.Add(a, b)
		return p.Ite(p.ULT(sum, a), p.Not(p.Word(0, s.n)), sum)
	})
	named[s.name("QSub%dUx%d")] = lanes(s.n, s.count, func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr {
		return p.Ite(p.ULT(a, b), p.Word(0, s.n), p.Sub(a, b))
	})
}

func topBits(count int) opFunc {
	return func(t *operands) *symbolic.Expr {
		e := assemble(t.Pool, count, func(i int) *symbolic.Expr { return t.Extract(t.a(), 8*i+7, 1) })
		return t.ZeroExt(e, max(count, 8))
	}
}

// permuteOrZero selects bytes by a constant.
func permuteOrZero(t *operands) *symbolic.Expr {
	return assemble(t.Pool, 16, func(i int) *symbolic.Expr {
		by := t.Extract(t.b(), 8*i, 8).Value.Lo
		if by >= 0x80 {
			return t.Word(0, 8)
		}
		return t.Extract(t.a(), 8*int(by&15), 8)
	})
}

// narrowings halve lanes, of the second operand first.
func narrowings(named map[string]opFunc) {
	for _, s := range []shape{{16, 4}, {32, 2}, {16, 8}, {32, 4}, {64, 2}} {
		narrow := func(f func(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr) opFunc {
			return func(t *operands) *symbolic.Expr {
				return assemble(t.Pool, 2*s.count, func(i int) *symbolic.Expr {
					return f(t.Pool, lane(t.Pool, t.args[1-i/s.count], i%s.count, s.n))
				})
			}
		}
		h := s.n / 2
		named[fmt.Sprintf("NarrowBin%dto%dx%d", s.n, h, 2*s.count)] = narrow(func(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr {
			return p.Extract(e, 0, h)
		})
		named[fmt.Sprintf("QNarrowBin%dSto%dUx%d", s.n, h, 2*s.count)] = narrow(func(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr {
			most := p.ZeroExt(p.Not(p.Word(0, h)), s.n)
			limited := p.Ite(p.SLT(e, p.Word(0, s.n)), p.Word(0, s.n), p.Ite(p.SLT(most, e), most, e))
			return p.Extract(limited, 0, h)
		})
		named[fmt.Sprintf("QNarrowBin%dSto%dSx%d", s.n, h, 2*s.count)] = narrow(func(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr {
			most := p.Word(1<<(h-1)-1, s.n)
			least := p.Not(most)
			limited := p.Ite(p.SLT(e, least), least, p.Ite(p.SLT(most, e), most, e))
			return p.Extract(limited, 0, h)
		})
	}
}
