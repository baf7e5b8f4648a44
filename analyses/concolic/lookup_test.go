package concolic

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A load from a table is, for each byte with which it is inside the table, the number there. Tables are like those of
// the kinds of characters: runs of equal numbers, and of the byte plus a number.
func TestLookups(t *testing.T) {
	const low, entry = 0x4000, 2
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		entries := 200 + rnd.IntN(120)
		memory := make([]byte, entry*entries)
		n, isByte := rnd.IntN(1<<16), false
		for i := range entries {
			if rnd.IntN(20) == 0 {
				n, isByte = rnd.IntN(1<<16), rnd.IntN(3) == 0
			}
			v := n
			if isByte {
				v += i
			}
			binary.LittleEndian.PutUint16(memory[entry*i:], uint16(v))
		}
		x := New(func(_, addr uint64, b []byte) int { return copy(b, memory[addr-low:]) })
		recorded := byte(rnd.IntN(200))
		x.Input(1, 0, "in", 0, []byte{recorded, 0, 0x40})
		in := x.Pool.Symbol("in[0]", 8)
		rest := x.Pool.ZeroExt(x.Pool.Concat(x.Pool.Symbol("in[2]", 8), x.Pool.Symbol("in[1]", 8)), 64)
		address := x.Pool.Add(rest, x.Pool.Mul(x.Pool.ZeroExt(in, 64), x.Pool.Word(entry, 64)))
		l := x.newLookup(lookupKey{1, address, entry}, low+entry*uint64(recorded), low, low+uint64(len(memory)))
		if l == nil {
			t.Fatalf("seed %d: no lookup", seed)
		}
		if l.rest == 0 || x.Express(l.rest) != x.Pool.Eq(rest, x.Pool.Word(low, 64)) {
			t.Errorf("seed %d: the rest of the address is not fixed", seed)
		}
		if (l.bound == 0) != (entries >= 256) {
			t.Errorf("seed %d: %d entries have a bound: %v", seed, entries, l.bound != 0)
		}
		for v := range 256 {
			of := symbolic.NewEvaluator(func(string) (symbolic.Value, bool) { return symbolic.Value{Lo: uint64(v)}, true })
			inside := true
			if l.bound != 0 {
				b, err := of.Value(x.Express(l.bound))
				if err != nil {
					t.Fatal(err)
				}
				inside = b.Lo == 1
			}
			if inside != (v < entries) {
				t.Fatalf("seed %d: byte %d of %d is inside: %v", seed, v, entries, inside)
			}
			if !inside {
				continue
			}
			if have, err := of.Value(x.Express(l.value)); err != nil || have.Lo != uint64(binary.LittleEndian.Uint16(memory[entry*v:])) {
				t.Fatalf("seed %d: byte %d has %#x, %v", seed, v, have.Lo, err)
			}
		}
	}
}

// An address that two bytes decide is no lookup, and neither is a table without order.
func TestOtherLoadsAreNoLookups(t *testing.T) {
	memory := make([]byte, 1<<12)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range memory {
		memory[i] = byte(rnd.Uint32())
	}
	x := New(func(_, addr uint64, b []byte) int { return copy(b, memory[addr:]) })
	x.Input(1, 0, "in", 0, []byte{3, 4})
	at := func(name string) *symbolic.Expr { return x.Pool.ZeroExt(x.Pool.Symbol(name, 8), 64) }
	if x.newLookup(lookupKey{1, x.Pool.Add(at("in[0]"), at("in[1]")), 1}, 7, 0, 1<<12) != nil {
		t.Error("an address of two bytes is a lookup")
	}
	if x.newLookup(lookupKey{1, x.Pool.Add(at("in[0]"), x.Pool.Word(16, 64)), 4}, 19, 0, 1<<12) != nil {
		t.Error("a table of random numbers is a lookup")
	}
}
