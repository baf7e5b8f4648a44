package concolic

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// lookup is a load from constant memory whose address is a constant of the run plus an expression of one byte.
type lookup struct {
	value Term // 0: it is the same for all bytes
	// bound is the condition on the byte with which the address is in constant memory, and rest that the other parts of the
	// address have their recorded value; 0: they always hold.
	bound, rest Term
}

type lookupKey struct {
	space   uint64
	address *symbolic.Expr
	size    int
}

// lookedUp is the term of a load from a table, such as the C library's of the kinds of characters; false: it is from another place.
func (r *blockRun) lookedUp(addr uint64, e Term, size int) (value Term, known bool) {
	x := r.x
	if !x.Tables || x.ConstantRange == nil || r.terms.sizeOf(e) != 64 || r.terms.isUntracked(e) || size > 8 {
		return 0, false
	}
	low, high := x.ConstantRange(r.space, addr)
	if addr < low || high < addr+uint64(size) {
		return 0, false
	}
	key := lookupKey{r.space, x.Express(e), size}
	l, found := x.lookups[key]
	if !found {
		l = x.newLookup(key, addr, low, high)
		if x.lookups == nil {
			x.lookups = map[lookupKey]*lookup{}
		}
		x.lookups[key] = l
	}
	if l == nil {
		return 0, false
	}
	for _, c := range []Term{l.bound, l.rest} {
		if c != 0 {
			r.addConstraint(c, Address, "")
		}
	}
	return l.value, true
}

// newLookup makes a lookup; nil: several bytes decide the address, or the table has no order.
func (x *Executor) newLookup(key lookupKey, addr, low, high uint64) *lookup {
	part, rest := x.splitAddress(key.address)
	if part == nil {
		return nil
	}
	var symbol *symbolic.Expr
	symbolic.Symbols(part, func(s *symbolic.Expr) { symbol = s })
	recorded, known := x.Recorded(symbol.Name)
	if !known || symbol.Bits != 8 {
		return nil
	}
	program := symbolic.Compile([]*symbolic.Expr{part})
	at := func(v uint64) uint64 { return program.Run([]symbolic.Value{{Lo: v}})[0].Lo }
	base := addr - at(recorded.Lo)
	var values [256]uint64
	var inside [256]bool
	for v := range values {
		var b [8]byte
		from := base + at(uint64(v))
		if from >= low && from <= high-uint64(key.size) && x.readCode(key.space, from, b[:key.size]) == key.size {
			values[v], inside[v] = binary.LittleEndian.Uint64(b[:]), true
		}
	}
	l := &lookup{bound: x.boundOf(symbol, &inside)}
	if rest != nil {
		l.rest = x.givenTerm(x.Pool.Eq(rest, x.Pool.Word(base, 64)))
	}
	runs := runsOf(&values, &inside)
	if len(runs) > maxRuns {
		return nil
	}
	l.value = x.givenTerm(x.chooseRun(symbol, runs, 8*key.size))
	return l
}

// splitAddress splits an address into the addends that a byte decides and the rest, with constants; nil: no single byte does.
func (x *Executor) splitAddress(e *symbolic.Expr) (part, rest *symbolic.Expr) {
	var symbol *symbolic.Expr
	ok := true
	add := func(to **symbolic.Expr, e *symbolic.Expr) {
		if *to != nil {
			e = x.Pool.Add(*to, e)
		}
		*to = e
	}
	var split func(*symbolic.Expr)
	split = func(e *symbolic.Expr) {
		if e.Op == symbolic.Add {
			split(e.A)
			split(e.B)
			return
		}
		var one *symbolic.Expr
		n := 0
		symbolic.Symbols(e, func(s *symbolic.Expr) { n, one = n+1, s })
		if n != 1 {
			add(&rest, e)
			return
		}
		ok = ok && (symbol == nil || symbol == one)
		symbol = one
		add(&part, e)
	}
	split(e)
	if !ok {
		return nil, nil
	}
	return part, rest
}

// run is consecutive bytes to which a table has the same value, or the byte plus the same number.
type run struct {
	to     int // the last
	add    uint64
	isByte bool
}

// maxRuns is how many runs a table has at most: of numbers without order there are more.
const maxRuns = 64

// runsOf cuts a table into runs. Bytes that are not inside have any value.
func runsOf(values *[256]uint64, inside *[256]bool) (list []run) {
	for from := 0; from < len(values); {
		best := run{to: from - 1}
		for _, isByte := range []bool{false, true} {
			r, set := run{isByte: isByte}, false
			for r.to = from; r.to < len(values); r.to++ {
				v := values[r.to]
				if isByte {
					v -= uint64(r.to)
				}
				if inside[r.to] && set && v != r.add {
					break
				}
				if inside[r.to] {
					r.add, set = v, true
				}
			}
			if r.to--; r.to > best.to {
				best = r
			}
		}
		list = append(list, best)
		from = best.to + 1
	}
	return list
}

// chooseRun is the value of a table as an expression of a number of bits.
func (x *Executor) chooseRun(symbol *symbolic.Expr, runs []run, bits int) *symbolic.Expr {
	if n := len(runs); n > 1 {
		half := runs[n/2-1]
		return x.Pool.Ite(x.Pool.ULE(symbol, x.Pool.Word(uint64(half.to), 8)), x.chooseRun(symbol, runs[:n/2], bits), x.chooseRun(symbol, runs[n/2:], bits))
	}
	value := x.Pool.Word(runs[0].add, bits)
	if !runs[0].isByte {
		return value
	}
	if bits > 8 {
		symbol = x.Pool.ZeroExt(symbol, bits)
	}
	return x.Pool.Add(symbol, value)
}

// boundOf is the condition that a byte is one of some; 0: all are.
func (x *Executor) boundOf(symbol *symbolic.Expr, some *[256]bool) Term {
	const yes = 1 << 32 // so far from 0 that no run is the byte plus a number
	var truths [256]uint64
	var all [256]bool
	for v := range some {
		all[v] = true
		if some[v] {
			truths[v] = yes
		}
	}
	runs := runsOf(&truths, &all)
	for i := range runs {
		runs[i].add /= yes
	}
	return x.givenTerm(x.chooseRun(symbol, runs, 1))
}
