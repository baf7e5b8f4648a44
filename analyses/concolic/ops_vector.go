package concolic

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// laneOf is lane i of lanes of n bits.
func laneOf(p *symbolic.Pool, e *symbolic.Expr, i, n int) *symbolic.Expr { return p.Extract(e, i*n, n) }

// assembleLanes concatenates lanes, the lowest first.
func assembleLanes(p *symbolic.Pool, count int, f func(i int) *symbolic.Expr) *symbolic.Expr {
	e := f(0)
	for i := 1; i < count; i++ {
		e = p.Concat(f(i), e)
	}
	return e
}

type laneFunc func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr

// lanewiseOp makes an operation that is the same in each lane.
func lanewiseOp(n, count int, f laneFunc) opFunc {
	return func(t *operands) *symbolic.Expr {
		return assembleLanes(t.Pool, count, func(i int) *symbolic.Expr {
			return f(t.Pool, laneOf(t.Pool, t.first(), i, n), laneOf(t.Pool, t.second(), i, n))
		})
	}
}

// spreadTruth turns a truth into all ones or all zeros.
func spreadTruth(f laneFunc) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.SignExt(f(p, a, b), a.Bits) }
}

// chooseOperand is the operand for which a comparison holds.
func chooseOperand(f laneFunc) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return p.Ite(f(p, a, b), a, b) }
}

func swapOperands(f laneFunc) laneFunc {
	return func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr { return f(p, b, a) }
}

type laneShape struct{ n, count int }

func (s laneShape) opName(format string) string { return fmt.Sprintf(format, s.n, s.count) }

func addVectorOps(named map[string]opFunc) {
	for _, s := range []laneShape{{8, 8}, {16, 4}, {32, 2}, {8, 16}, {16, 8}, {32, 4}, {64, 2}} {
		set := func(format string, f laneFunc) { named[s.opName(format)] = lanewiseOp(s.n, s.count, f) }
		set("Add%dx%d", (*symbolic.Pool).Add)
		set("Sub%dx%d", (*symbolic.Pool).Sub)
		set("Mul%dx%d", (*symbolic.Pool).Mul)
		set("CmpEQ%dx%d", spreadTruth((*symbolic.Pool).Eq))
		set("CmpGT%dSx%d", spreadTruth(swapOperands((*symbolic.Pool).SLT)))
		set("Min%dUx%d", chooseOperand((*symbolic.Pool).ULT))
		set("Min%dSx%d", chooseOperand((*symbolic.Pool).SLT))
		set("Max%dUx%d", chooseOperand(swapOperands((*symbolic.Pool).ULT)))
		set("Max%dSx%d", chooseOperand(swapOperands((*symbolic.Pool).SLT)))
		s.addShifts(named)
		s.addInterleaves(named)
		s.addSaturating(named)
	}
	named["GetMSBs8x16"], named["GetMSBs8x8"] = topBitsOp(16), topBitsOp(8)
	named["PermOrZero8x16"] = permuteOrZero
	addNarrowings(named)
}

func (s laneShape) addShifts(named map[string]opFunc) {
	by := func(f laneFunc) opFunc {
		return func(t *operands) *symbolic.Expr {
			amount := resizeExpr(t.Pool, t.second(), s.n)
			return assembleLanes(t.Pool, s.count, func(i int) *symbolic.Expr {
				return f(t.Pool, laneOf(t.Pool, t.first(), i, s.n), amount)
			})
		}
	}
	named[s.opName("ShlN%dx%d")] = by((*symbolic.Pool).Shl)
	named[s.opName("ShrN%dx%d")] = by((*symbolic.Pool).LShr)
	named[s.opName("SarN%dx%d")] = by((*symbolic.Pool).AShr)
}

// addInterleaves adds operations that pick lanes of both operands, of the second one first.
func (s laneShape) addInterleaves(named map[string]opFunc) {
	pick := func(which func(i int) (operand, lane int)) opFunc {
		return func(t *operands) *symbolic.Expr {
			return assembleLanes(t.Pool, s.count, func(i int) *symbolic.Expr {
				operand, at := which(i)
				return laneOf(t.Pool, t.args[operand], at, s.n)
			})
		}
	}
	half := s.count / 2
	named[s.opName("InterleaveLO%dx%d")] = pick(func(i int) (int, int) { return 1 - i%2, i / 2 })
	named[s.opName("InterleaveHI%dx%d")] = pick(func(i int) (int, int) { return 1 - i%2, half + i/2 })
	named[s.opName("CatEvenLanes%dx%d")] = pick(func(i int) (int, int) { return 1 - i/half, i % half * 2 })
	named[s.opName("CatOddLanes%dx%d")] = pick(func(i int) (int, int) { return 1 - i/half, i%half*2 + 1 })
}

// addSaturating adds unsigned saturating sums and differences.
func (s laneShape) addSaturating(named map[string]opFunc) {
	named[s.opName("QAdd%dUx%d")] = lanewiseOp(s.n, s.count, func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr {
		sum := p.Add(a, b)
		return p.Ite(p.ULT(sum, a), p.Not(p.Word(0, s.n)), sum)
	})
	named[s.opName("QSub%dUx%d")] = lanewiseOp(s.n, s.count, func(p *symbolic.Pool, a, b *symbolic.Expr) *symbolic.Expr {
		return p.Ite(p.ULT(a, b), p.Word(0, s.n), p.Sub(a, b))
	})
}

func topBitsOp(count int) opFunc {
	return func(t *operands) *symbolic.Expr {
		e := assembleLanes(t.Pool, count, func(i int) *symbolic.Expr { return t.Extract(t.first(), 8*i+7, 1) })
		return t.ZeroExt(e, max(count, 8))
	}
}

// permuteOrZero selects bytes by a constant.
func permuteOrZero(t *operands) *symbolic.Expr {
	return assembleLanes(t.Pool, 16, func(i int) *symbolic.Expr {
		by := t.Extract(t.second(), 8*i, 8).Value.Lo
		if by >= 0x80 {
			return t.Word(0, 8)
		}
		return t.Extract(t.first(), 8*int(by&15), 8)
	})
}

// addNarrowings adds operations that halve lanes, those of the second operand first.
func addNarrowings(named map[string]opFunc) {
	for _, s := range []laneShape{{16, 4}, {32, 2}, {16, 8}, {32, 4}, {64, 2}} {
		narrow := func(f func(p *symbolic.Pool, e *symbolic.Expr) *symbolic.Expr) opFunc {
			return func(t *operands) *symbolic.Expr {
				return assembleLanes(t.Pool, 2*s.count, func(i int) *symbolic.Expr {
					return f(t.Pool, laneOf(t.Pool, t.args[1-i/s.count], i%s.count, s.n))
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
