package concolic

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// The functions of this file build terms for the results of functions that search bytes,
// such as strcmp(3) and strchr(3): a choice for each position of the answer, up to the end
// of the recorded strings. A constraint of the kind Bound says that the answer of another
// input lies within these positions. Recorded strings are considered up to their zeros,
// since unrelated bytes may follow.

// loadedBytes are bytes that a function has loaded.
type loadedBytes struct {
	addr  uint64
	bytes [16]byte
	cells [16]cell
	size  int
}

// recordLoad records the value and the terms of a load.
func (c *summarizedCall) recordLoad(t *thread, addr uint64, p []byte) {
	l := loadedBytes{addr: addr, size: len(p)}
	copy(l.bytes[:], p)
	if t.x.memory.dependsOnInput(t.space, addr, len(p)) {
		c.touched = true
		t.x.memory.loadCells(t.space, addr, l.cells[:len(p)])
	}
	c.loads = append(c.loads, l)
}

// textBytes are the bytes from an address that the function has loaded.
type textBytes struct {
	bytes []byte
	terms []Term // constants where they depend on no input
}

// maxTextBytes is the number of bytes of a string that are considered, maxMatches the
// number of pairs of bytes in a search.
const (
	maxTextBytes = 4096
	maxMatches   = 1 << 14
)

// loadedText returns the bytes from an address that the function has loaded.
func (c *summarizedCall) loadedText(t *termStore, addr uint64) textBytes {
	var s textBytes
	for len(s.bytes) < maxTextBytes {
		at := addr + uint64(len(s.bytes))
		i := slices.IndexFunc(c.loads, func(l loadedBytes) bool { return l.addr <= at && at < l.addr+uint64(l.size) })
		if i < 0 {
			break
		}
		l := &c.loads[i]
		for k := int(at - l.addr); k < l.size; k++ {
			s.bytes = append(s.bytes, l.bytes[k])
			s.terms = append(s.terms, t.byteTerm(l.cells[k], l.bytes[k]))
		}
	}
	return s
}

// byteTerm is a byte as a term.
func (t *termStore) byteTerm(c cell, b byte) Term {
	if c == 0 {
		return t.constantTerm(symbolic.Value{Lo: uint64(b)}, 8)
	}
	return t.extractBytes(c.term(), c.byteIndex(), 1)
}

// lengthWithZero is the length of a text with the zero at its end, or of all of it.
func (s textBytes) lengthWithZero() int {
	if i := slices.Index(s.bytes, 0); i >= 0 {
		return i + 1
	}
	return len(s.bytes)
}

// searchAnswer is the result of a summary, 0 if it depends on no input, and the condition
// under which it is right, 0 if it always is.
type searchAnswer struct{ result, bound Term }

// answerBuilder builds an answer from the last position to the first.
type answerBuilder struct {
	*termStore
	bits      int
	result    Term
	undecided Term // that no position added so far decides
}

func (c *answerBuilder) numberTerm(x uint64) Term {
	return c.constantTerm(symbolic.Value{Lo: x}, c.bits)
}

func (c *answerBuilder) truthTerm(b bool) Term {
	x := uint64(0)
	if b {
		x = 1
	}
	return c.constantTerm(symbolic.Value{Lo: x}, 1)
}

// truthValue returns the value of a truth that is a constant.
func (t *termStore) truthValue(of Term) (value, known bool) {
	if of >= 0 {
		return false, false
	}
	return t.literals[-of-1].value.Lo != 0, true
}

// foldEqual, foldAnd, foldNot and foldIte build terms and simplify constants.
func (c *answerBuilder) foldEqual(a, b Term) Term {
	switch {
	case a == b:
		return c.truthTerm(true)
	case a < 0 && b < 0:
		return c.truthTerm(false)
	}
	return c.equalTerm(a, b)
}

func (c *answerBuilder) foldAnd(a, b Term) Term {
	for range 2 {
		if value, known := c.truthValue(a); known {
			if value {
				return b
			}
			return a
		}
		a, b = b, a
	}
	return c.addNode(termNode{op: nodeAnd, bits: 1, a: a, b: b})
}

func (c *answerBuilder) foldNot(a Term) Term {
	if value, known := c.truthValue(a); known {
		return c.truthTerm(!value)
	}
	return c.notTerm(a)
}

func (c *answerBuilder) foldIte(condition, then, otherwise Term) Term {
	value, known := c.truthValue(condition)
	switch {
	case known && value || then == otherwise:
		return then
	case known:
		return otherwise
	}
	return c.addNode(termNode{op: nodeIte, bits: uint8(c.termStore.sizeOf(then)), a: condition, b: then, c: otherwise})
}

// addPosition adds a position before the others: if the condition holds, this is the
// result.
func (c *answerBuilder) addPosition(condition, result Term) {
	c.result = c.foldIte(condition, result, c.result)
	c.undecided = c.foldAnd(c.undecided, c.foldNot(condition))
}

// newAnswerBuilder begins after the last position. If natural is set, the result is valid
// there, too.
func (t *termStore) newAnswerBuilder(bits int, result uint64, natural bool) *answerBuilder {
	c := &answerBuilder{termStore: t, bits: bits}
	c.result = c.numberTerm(result)
	c.undecided = c.truthTerm(!natural)
	return c
}

// finishAnswer returns the answer.
func (c *answerBuilder) finishAnswer() searchAnswer {
	a := searchAnswer{result: max(c.result, 0)}
	if a.bound = c.foldNot(c.undecided); a.bound < 0 {
		a.bound = 0
	}
	return a
}

// searchFunc builds the answer of a function from its arguments; false: no answer fits the
// recorded one.
type searchFunc func(c *summarizedCall, t *termStore, result uint64) (searchAnswer, bool)

var searchFuncs = map[string]searchFunc{"compare": searchCompare, "find": searchByte, "length": searchLength, "search": searchString}

// maxSearchBytes is the limit that the call gives on the bytes of the search.
func (c *summarizedCall) maxSearchBytes() int {
	if c.Size == 0 {
		return math.MaxInt
	}
	return int(min(c.args[c.Size-1], math.MaxInt))
}

// searchExtent returns the end of the positions, and whether the function ends there if it
// has found nothing.
func (c *summarizedCall) searchExtent(texts ...textBytes) (last int, natural bool) {
	last = c.maxSearchBytes()
	for _, s := range texts {
		n := len(s.bytes)
		if !c.Memory {
			n = s.lengthWithZero()
		}
		last = min(last, n)
	}
	return last, c.Size > 0 && last == c.maxSearchBytes()
}

// searchCompare is strcmp, strncmp and memcmp. Only the sign of the result is modelled: C
// promises no more (strcmp(3)).
func searchCompare(c *summarizedCall, t *termStore, result uint64) (searchAnswer, bool) {
	a, b := c.loadedText(t, c.args[0]), c.loadedText(t, c.args[1])
	last, natural := c.searchExtent(a, b)
	recorded, decided := 0, natural
	for i := range last {
		if a.bytes[i] != b.bytes[i] || !c.Memory && a.bytes[i] == 0 {
			recorded, decided = int(a.bytes[i])-int(b.bytes[i]), true
			break
		}
	}
	was := int32(result)
	if !decided || recorded < 0 != (was < 0) || recorded > 0 != (was > 0) {
		return searchAnswer{}, false
	}
	k := t.newAnswerBuilder(32, 0, natural)
	less, greater := k.numberTerm(uint64(uint32(min(was, -1)))), k.numberTerm(uint64(uint32(max(was, 1))))
	for i := last - 1; i >= 0; i-- {
		if !c.Memory {
			k.addPosition(k.foldEqual(a.terms[i], k.constantTerm(symbolic.Value{}, 8)), k.numberTerm(0))
		}
		same := k.foldEqual(a.terms[i], b.terms[i])
		k.addPosition(k.foldNot(same), k.foldIte(k.foldLess(a.terms[i], b.terms[i]), less, greater))
	}
	return k.finishAnswer(), true
}

// foldLess compares two bytes.
func (c *answerBuilder) foldLess(a, b Term) Term {
	if a < 0 && b < 0 {
		return c.truthTerm(c.literals[-a-1].value.Lo < c.literals[-b-1].value.Lo)
	}
	return c.operationTerm(opNumber("CmpLT32U"), 1, c.widenByte(a), c.widenByte(b), 0)
}

// widenByte is a byte in 32 bits.
func (c *answerBuilder) widenByte(a Term) Term {
	if a < 0 {
		return c.constantTerm(c.literals[-a-1].value, 32)
	}
	return c.fitSize(a, 32)
}

// searchByte is strchr and memchr: the address of the first equal byte.
func searchByte(c *summarizedCall, t *termStore, result uint64) (searchAnswer, bool) {
	s := c.loadedText(t, c.args[0])
	last, natural := c.searchExtent(s)
	wanted := t.byteTerm(c.second, byte(c.args[1]))
	at := slices.Index(s.bytes[:last], byte(c.args[1]))
	recorded, decided := c.args[0]+uint64(at), at >= 0
	if at < 0 {
		recorded, decided = 0, natural || !c.Memory && slices.Contains(s.bytes[:last], 0)
	}
	if !decided || recorded != result {
		return searchAnswer{}, false
	}
	k := t.newAnswerBuilder(64, 0, natural)
	for i := last - 1; i >= 0; i-- {
		if !c.Memory {
			k.addPosition(k.foldEqual(s.terms[i], k.constantTerm(symbolic.Value{}, 8)), k.numberTerm(0))
		}
		k.addPosition(k.foldEqual(s.terms[i], wanted), k.numberTerm(c.args[0]+uint64(i)))
	}
	return k.finishAnswer(), true
}

// searchLength is strlen and strnlen.
func searchLength(c *summarizedCall, t *termStore, result uint64) (searchAnswer, bool) {
	s := c.loadedText(t, c.args[0])
	last, natural := c.searchExtent(s)
	at := slices.Index(s.bytes[:last], 0)
	if at < 0 && natural {
		at = last
	}
	if at < 0 || uint64(at) != result {
		return searchAnswer{}, false
	}
	k := t.newAnswerBuilder(64, uint64(last), natural)
	for i := last - 1; i >= 0; i-- {
		k.addPosition(k.foldEqual(s.terms[i], k.constantTerm(symbolic.Value{}, 8)), k.numberTerm(uint64(i)))
	}
	return k.finishAnswer(), true
}

// searchString is strstr: the address of the first equal string. The bound includes that
// the wanted string has the recorded length, as far as it was read.
func searchString(c *summarizedCall, t *termStore, result uint64) (searchAnswer, bool) {
	s, wanted := c.loadedText(t, c.args[0]), c.loadedText(t, c.args[1])
	last := s.lengthWithZero()
	n := slices.Index(wanted.bytes, 0)
	whole := n >= 0
	if !whole {
		n = len(wanted.bytes)
	}
	if last*n > maxMatches || !matchesResult(s.bytes[:last], wanted.bytes[:n], whole, c.args[0], result) {
		return searchAnswer{}, false
	}
	k := t.newAnswerBuilder(64, 0, false)
	zero := k.constantTerm(symbolic.Value{}, 8)
	for i := last - 1; i >= 0; i-- {
		k.addPosition(k.foldEqual(s.terms[i], zero), k.numberTerm(0))
		match := k.truthTerm(i+n <= last)
		for j := range min(n, last-i) {
			match = k.foldAnd(match, k.foldEqual(s.terms[i+j], wanted.terms[j]))
		}
		if whole {
			k.addPosition(match, k.numberTerm(c.args[0]+uint64(i)))
		} else {
			k.undecided = k.foldNot(k.foldAnd(k.foldNot(match), k.foldNot(k.undecided)))
		}
	}
	decided := k.foldNot(k.undecided)
	for _, b := range wanted.terms[:n] {
		decided = k.foldAnd(decided, k.foldNot(k.foldEqual(b, zero)))
	}
	if whole {
		decided = k.foldAnd(decided, k.foldEqual(wanted.terms[n], zero))
	}
	k.undecided = k.foldNot(decided)
	return k.finishAnswer(), true
}

// matchesResult reports whether a result is the address of a string in the recorded text.
// For a string that is not known to its end, it must not occur at all.
func matchesResult(in, wanted []byte, whole bool, base, result uint64) bool {
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

// setSearchResult sets the result of a function to its term. If it has none, the bytes that
// it depends on are fixed.
func (t *thread) setSearchResult(c *summarizedCall) {
	if !c.touched && c.second == 0 {
		return
	}
	n := c.Bits / 8
	v, _ := t.registerTerm(vex.OffsetRAX, n)
	a, ok := searchFuncs[c.Result](c, t.x.terms, v.Lo)
	if !ok {
		t.fixLoads(c)
		return
	}
	if a.bound != 0 {
		t.x.addConstraint(t.newConstraint(a.bound, Bound, c.Function))
	}
	t.registers.setTerm(vex.SpanOf(vex.OffsetRAX, n), t.x.terms.fitSize(a.result, c.Bits))
}

// fixLoads fixes the bytes that a function has loaded, and its second argument.
func (t *thread) fixLoads(c *summarizedCall) {
	for i := range c.loads {
		l := &c.loads[i]
		for k := range l.size {
			if l.cells[k] != 0 {
				t.fixOutsideBlock(symbolic.Value{Lo: uint64(l.bytes[k])}, t.x.terms.byteTerm(l.cells[k], 0), Fixed, c.Function)
			}
		}
	}
	if c.second != 0 {
		t.fixOutsideBlock(symbolic.Value{Lo: c.args[1] & 0xff}, t.x.terms.byteTerm(c.second, 0), Fixed, c.Function)
	}
}
