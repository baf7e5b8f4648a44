package exec

import (
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// letter keeps the letter that a call of tolower(3) or toupper(3) is about.
func (t *thread) letter(c *summarized) {
	v, e := t.register(vex.OffsetRAX+8*argumentRegisters[0], 4)
	c.args[0], c.letter = v.Lo, e
}

// lettered makes the result of such a call a term: that the letter is below 128 is a
// constraint of the kind Bound, as others depend on the locale. If the recorded result
// is another than in the C locale the letter is fixed.
func (t *thread) lettered(c *summarized) {
	if c.letter == 0 {
		return
	}
	first, change := uint64('A'), uint64('a'-'A')
	if c.Result == "upper" {
		first, change = 'a', 1<<32-('a'-'A')
	}
	was, _ := t.register(vex.OffsetRAX, 4)
	expected := c.args[0]
	if expected-first < 26 {
		expected = (expected + change) & 0xffffffff
	}
	if c.args[0] >= 128 || was.Lo != expected {
		t.fix(symbolic.Value{Lo: c.args[0]}, c.letter, Fixed, c.Function)
		return
	}
	terms := t.x.terms
	number := func(n uint64) Term { return terms.constant(symbolic.Value{Lo: n}, 32) }
	below := func(a Term, n uint64) Term { return terms.operation(opNumber("CmpLT32U"), 1, a, number(n), 0) }
	t.x.add(t.constraint(below(c.letter, 128), Bound, c.Function))
	isLetter := below(terms.operation(opNumber("Sub32"), 32, c.letter, number(first), 0), 26)
	changed := terms.operation(opNumber("Add32"), 32, c.letter, number(change), 0)
	t.registers.set(vex.SpanOf(vex.OffsetRAX, 4), terms.add(node{op: nodeIte, bits: 32, a: isLetter, b: changed, c: c.letter}))
}
