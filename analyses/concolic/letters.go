package concolic

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// recordLetter records the argument of a call of tolower(3) or toupper(3).
func (t *thread) recordLetter(c *summarizedCall) {
	v, e := t.registerTerm(vex.OffsetRAX+8*argumentRegisters[0], 4)
	c.args[0], c.letter = v.Lo, e
}

// setCaseResult sets the result of such a call to a term. A constraint of kind Bound says
// that the letter is below 128, since others depend on the locale. If the recorded result
// is not that of the C locale, the letter is fixed.
func (t *thread) setCaseResult(c *summarizedCall) {
	if c.letter == 0 {
		return
	}
	first, change := uint64('A'), uint64('a'-'A')
	if c.Result == "upper" {
		first, change = 'a', 1<<32-('a'-'A')
	}
	was, _ := t.registerTerm(vex.OffsetRAX, 4)
	expected := c.args[0]
	if expected-first < 26 {
		expected = (expected + change) & 0xffffffff
	}
	if c.args[0] >= 128 || was.Lo != expected {
		t.fixOutsideBlock(symbolic.Value{Lo: c.args[0]}, c.letter, Fixed, c.Function)
		return
	}
	terms := t.x.terms
	number := func(n uint64) Term { return terms.constantTerm(symbolic.Value{Lo: n}, 32) }
	below := func(a Term, n uint64) Term { return terms.operationTerm(opNumber("CmpLT32U"), 1, a, number(n), 0) }
	t.x.addConstraint(t.newConstraint(below(c.letter, 128), Bound, c.Function))
	isLetter := below(terms.operationTerm(opNumber("Sub32"), 32, c.letter, number(first), 0), 26)
	changed := terms.operationTerm(opNumber("Add32"), 32, c.letter, number(change), 0)
	t.registers.setTerm(vex.SpanOf(vex.OffsetRAX, 4), terms.addNode(termNode{op: nodeIte, bits: 32, a: isLetter, b: changed, c: c.letter}))
}
