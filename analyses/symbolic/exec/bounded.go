package exec

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// The functions of this file make terms of the results of functions that look for
// something in bytes, such as strcmp(3) and strchr(3): a choice for each position at
// which the answer may be, up to the last that the recorded strings have. That an
// input's answer is not behind it is a constraint of the kind Bound. Strings of the
// recorded inputs are looked at up to their zeros: behind them may be others.

// loaded are bytes that a function has loaded.
type loaded struct {
	addr  uint64
	bytes [16]byte
	cells [16]cell
	size  int
}

// note notes what the function has loaded, as it was then.
func (c *summarized) note(t *thread, addr uint64, p []byte) {
	l := loaded{addr: addr, size: len(p)}
	copy(l.bytes[:], p)
	if t.x.memory.touched(t.space, addr, len(p)) {
		c.touched = true
		t.x.memory.load(t.space, addr, l.cells[:len(p)])
	}
	c.loads = append(c.loads, l)
}

// text is bytes from an address on, as many as the function has loaded.
type text struct {
	bytes []byte
	terms []Term // constants where they depend on no input
}

// most is how many bytes of a string are looked at, and mostMatches how many pairs of
// bytes in a search.
const (
	most        = 4096
	mostMatches = 1 << 14
)

// text is what the function has loaded from an address on.
func (c *summarized) text(t *terms, addr uint64) text {
	var s text
	for len(s.bytes) < most {
		at := addr + uint64(len(s.bytes))
		i := slices.IndexFunc(c.loads, func(l loaded) bool { return l.addr <= at && at < l.addr+uint64(l.size) })
		if i < 0 {
			break
		}
		l := &c.loads[i]
		for k := int(at - l.addr); k < l.size; k++ {
			s.bytes = append(s.bytes, l.bytes[k])
			s.terms = append(s.terms, t.byteOf(l.cells[k], l.bytes[k]))
		}
	}
	return s
}

// byteOf is a byte as a term.
func (t *terms) byteOf(c cell, b byte) Term {
	if c == 0 {
		return t.constant(symbolic.Value{Lo: uint64(b)}, 8)
	}
	return t.extract(c.term(), c.at(), 1)
}

// upToZero is how long a text is with the zero at its end, or all of it.
func (s text) upToZero() int {
	if i := slices.Index(s.bytes, 0); i >= 0 {
		return i + 1
	}
	return len(s.bytes)
}

// answer is what a summary comes to: the result, 0 if it depends on no input, and
// the truth that it is right, 0 if it always is.
type answer struct{ result, bound Term }

// chooser makes an answer: from the last position to the first.
type chooser struct {
	*terms
	bits      int
	result    Term
	undecided Term // that no position before has decided; 0: it is not known yet
}

func (c *chooser) number(x uint64) Term { return c.constant(symbolic.Value{Lo: x}, c.bits) }

func (c *chooser) truth(b bool) Term {
	x := uint64(0)
	if b {
		x = 1
	}
	return c.constant(symbolic.Value{Lo: x}, 1)
}

// isTrue is the value of a truth that is a constant.
func (t *terms) isTrue(of Term) (value, known bool) {
	if of >= 0 {
		return false, false
	}
	return t.literals[-of-1].value.Lo != 0, true
}

// equals, both, negated and choose leave out what is known.
func (c *chooser) equals(a, b Term) Term {
	switch {
	case a == b:
		return c.truth(true)
	case a < 0 && b < 0:
		return c.truth(false)
	}
	return c.equal(a, b)
}

func (c *chooser) both(a, b Term) Term {
	for range 2 {
		if value, known := c.isTrue(a); known {
			if value {
				return b
			}
			return a
		}
		a, b = b, a
	}
	return c.add(node{op: nodeAnd, bits: 1, a: a, b: b})
}

func (c *chooser) negated(a Term) Term {
	if value, known := c.isTrue(a); known {
		return c.truth(!value)
	}
	return c.not(a)
}

func (c *chooser) choose(condition, then, otherwise Term) Term {
	value, known := c.isTrue(condition)
	switch {
	case known && value || then == otherwise:
		return then
	case known:
		return otherwise
	}
	return c.add(node{op: nodeIte, bits: uint8(c.terms.bits(then)), a: condition, b: then, c: otherwise})
}

// decide adds a position before those that were added: if the condition holds the
// result is this one.
func (c *chooser) decide(condition, result Term) {
	c.result = c.choose(condition, result, c.result)
	c.undecided = c.both(c.undecided, c.negated(condition))
}

// start begins behind the last position; natural: the result there is an answer, too.
func (t *terms) start(bits int, result uint64, natural bool) *chooser {
	c := &chooser{terms: t, bits: bits}
	c.result = c.number(result)
	c.undecided = c.truth(!natural)
	return c
}

// answer is what was chosen.
func (c *chooser) answer() answer {
	a := answer{result: max(c.result, 0)}
	if a.bound = c.negated(c.undecided); a.bound < 0 {
		a.bound = 0
	}
	return a
}

// A searcher finds the answer of a function to its arguments; false: it has none that
// fits the recorded one.
type searcher func(c *summarized, t *terms, result uint64) (answer, bool)

var searchers = map[string]searcher{"compare": compare, "find": find, "length": length, "search": search}

// size is the number of bytes that the function looks at at most.
func (c *summarized) size() int {
	if c.Size == 0 {
		return math.MaxInt
	}
	return int(min(c.args[c.Size-1], math.MaxInt))
}

// extent is to where texts are looked at, and whether the function ends there if it
// has not found anything.
func (c *summarized) extent(texts ...text) (last int, natural bool) {
	last = c.size()
	for _, s := range texts {
		n := len(s.bytes)
		if !c.Memory {
			n = s.upToZero()
		}
		last = min(last, n)
	}
	return last, c.Size > 0 && last == c.size()
}

// compare is strcmp, strncmp and memcmp. Which of the strings is less is what the
// result says: C promises no more of a number that is not 0 (strcmp(3)).
func compare(c *summarized, t *terms, result uint64) (answer, bool) {
	a, b := c.text(t, c.args[0]), c.text(t, c.args[1])
	last, natural := c.extent(a, b)
	recorded, decided := 0, natural
	for i := range last {
		if a.bytes[i] != b.bytes[i] || !c.Memory && a.bytes[i] == 0 {
			recorded, decided = int(a.bytes[i])-int(b.bytes[i]), true
			break
		}
	}
	was := int32(result)
	if !decided || recorded < 0 != (was < 0) || recorded > 0 != (was > 0) {
		return answer{}, false
	}
	k := t.start(32, 0, natural)
	less, greater := k.number(uint64(uint32(min(was, -1)))), k.number(uint64(uint32(max(was, 1))))
	for i := last - 1; i >= 0; i-- {
		if !c.Memory {
			k.decide(k.equals(a.terms[i], k.constant(symbolic.Value{}, 8)), k.number(0))
		}
		same := k.equals(a.terms[i], b.terms[i])
		k.decide(k.negated(same), k.choose(k.less(a.terms[i], b.terms[i]), less, greater))
	}
	return k.answer(), true
}

// less compares two bytes.
func (c *chooser) less(a, b Term) Term {
	if a < 0 && b < 0 {
		return c.truth(c.literals[-a-1].value.Lo < c.literals[-b-1].value.Lo)
	}
	return c.operation(opNumber("CmpLT32U"), 1, c.widened(a), c.widened(b), 0)
}

// widened is a byte in 32 bits.
func (c *chooser) widened(a Term) Term {
	if a < 0 {
		return c.constant(c.literals[-a-1].value, 32)
	}
	return c.fit(a, 32)
}

// find is strchr and memchr: where the first such byte is.
func find(c *summarized, t *terms, result uint64) (answer, bool) {
	s := c.text(t, c.args[0])
	last, natural := c.extent(s)
	wanted := t.byteOf(c.second, byte(c.args[1]))
	at := slices.Index(s.bytes[:last], byte(c.args[1]))
	recorded, decided := c.args[0]+uint64(at), at >= 0
	if at < 0 {
		recorded, decided = 0, natural || !c.Memory && slices.Contains(s.bytes[:last], 0)
	}
	if !decided || recorded != result {
		return answer{}, false
	}
	k := t.start(64, 0, natural)
	for i := last - 1; i >= 0; i-- {
		if !c.Memory {
			k.decide(k.equals(s.terms[i], k.constant(symbolic.Value{}, 8)), k.number(0))
		}
		k.decide(k.equals(s.terms[i], wanted), k.number(c.args[0]+uint64(i)))
	}
	return k.answer(), true
}

// length is strlen and strnlen.
func length(c *summarized, t *terms, result uint64) (answer, bool) {
	s := c.text(t, c.args[0])
	last, natural := c.extent(s)
	at := slices.Index(s.bytes[:last], 0)
	if at < 0 && natural {
		at = last
	}
	if at < 0 || uint64(at) != result {
		return answer{}, false
	}
	k := t.start(64, uint64(last), natural)
	for i := last - 1; i >= 0; i-- {
		k.decide(k.equals(s.terms[i], k.constant(symbolic.Value{}, 8)), k.number(uint64(i)))
	}
	return k.answer(), true
}

// search is strstr: where the first such string is. That the string that is looked
// for has the recorded length, as far as it was looked at, is a part of the bound.
func search(c *summarized, t *terms, result uint64) (answer, bool) {
	s, wanted := c.text(t, c.args[0]), c.text(t, c.args[1])
	last := s.upToZero()
	n := slices.Index(wanted.bytes, 0)
	whole := n >= 0
	if !whole {
		n = len(wanted.bytes)
	}
	if last*n > mostMatches || !foundAt(s.bytes[:last], wanted.bytes[:n], whole, c.args[0], result) {
		return answer{}, false
	}
	k := t.start(64, 0, false)
	zero := k.constant(symbolic.Value{}, 8)
	for i := last - 1; i >= 0; i-- {
		k.decide(k.equals(s.terms[i], zero), k.number(0))
		match := k.truth(i+n <= last)
		for j := range min(n, last-i) {
			match = k.both(match, k.equals(s.terms[i+j], wanted.terms[j]))
		}
		if whole {
			k.decide(match, k.number(c.args[0]+uint64(i)))
		} else {
			k.undecided = k.negated(k.both(k.negated(match), k.negated(k.undecided)))
		}
	}
	decided := k.negated(k.undecided)
	for _, b := range wanted.terms[:n] {
		decided = k.both(decided, k.negated(k.equals(b, zero)))
	}
	if whole {
		decided = k.both(decided, k.equals(wanted.terms[n], zero))
	}
	k.undecided = k.negated(decided)
	return k.answer(), true
}

// foundAt tells whether a result is where a string is in the recorded one. Of a
// string that is not known as a whole it must be that it is nowhere.
func foundAt(in, wanted []byte, whole bool, base, result uint64) bool {
	for i := range in {
		if i+len(wanted) <= len(in) && string(in[i:i+len(wanted)]) == string(wanted) {
			return whole && result == base+uint64(i)
		}
		if in[i] == 0 {
			return result == 0
		}
	}
	return false
}

// search gives the result of a function that was executed its term. If it has none
// the bytes that it depends on are fixed.
func (t *thread) search(c *summarized) {
	if !c.touched && c.second == 0 {
		return
	}
	n := c.Bits / 8
	v, _ := t.register(vex.OffsetRAX, n)
	a, ok := searchers[c.Result](c, t.x.terms, v.Lo)
	if !ok {
		t.fixLoads(c)
		return
	}
	if a.bound != 0 {
		t.x.add(t.constraint(a.bound, Bound, c.Function))
	}
	t.registers.set(vex.SpanOf(vex.OffsetRAX, n), t.x.terms.fit(a.result, c.Bits))
}

// fixLoads fixes what a function has loaded, and its second argument.
func (t *thread) fixLoads(c *summarized) {
	for i := range c.loads {
		l := &c.loads[i]
		for k := range l.size {
			if l.cells[k] != 0 {
				t.fix(symbolic.Value{Lo: uint64(l.bytes[k])}, t.x.terms.byteOf(l.cells[k], 0), Fixed, c.Function)
			}
		}
	}
	if c.second != 0 {
		t.fix(symbolic.Value{Lo: c.args[1] & 0xff}, t.x.terms.byteOf(c.second, 0), Fixed, c.Function)
	}
}
