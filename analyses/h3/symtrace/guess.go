package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// Memory that one thread writes once, and no other thread writes, has one value after that write. A
// read by another thread still gets a symbol, but one with a guess: as soon as an expression is
// more than a comparison, the guessed value is used, which becomes a condition. So data that one
// thread hands over to another does not become symbols in every bit that is computed from it. If
// the thread then leaves its path, the guess is taken back.

// guessAbove is how many operations an expression has that is computed with the
// guesses; smaller ones are copies and tests.
const guessAbove = 6

// maxGuesses is how many guesses of a thread can be taken back, the latest.
const maxGuesses = 32

// writtenBytes are the facts about the bytes that threads write: the value of each byte that is
// written once.
type writtenBytes map[uint64]writtenByte

type writtenByte struct {
	value byte
	once  bool
}

// constantWrites collects the writes of all threads, by byte.
func (b *pass) constantWrites() writtenBytes {
	all := writtenBytes{}
	for _, w := range b.threads {
		for i := range w.events {
			e := &w.events[i]
			if !e.Kind.Writes() || e.Index != nil {
				continue
			}
			value := symmem.BytesOf(e.Value.Value)
			for k := range e.Size {
				_, again := all[e.Addr+uint64(k)]
				all[e.Addr+uint64(k)] = writtenByte{value[k], e.Value.IsConst() && !again}
			}
		}
	}
	return all
}

// recordGuess notes the value that a symbol for some bytes has once all writes to them are done.
func (b *pass) recordGuess(name string, addr uint64, size int) {
	var content [16]byte
	any := false
	b.image.peekChanged(addr, content[:size])
	for i := range size {
		w, ok := b.previousWrites[addr+uint64(i)]
		if ok && !w.once {
			return
		}
		if ok {
			any, content[i] = true, w.value
		}
	}
	if !any {
		return
	}
	b.guesses[name] = symmem.ValueOf(content[:size])
	if v, ok := b.options.Prefer[name]; ok {
		b.guesses[name] = v
	}
}

// guessedSymbol finds a symbol of an expression that has a guess.
func (w *threadExec) guessedSymbol(e *symbolic.Expr) (name string, v symbolic.Value, ok bool) {
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		if ok || w.refusedGuesses[s.Name] {
			return
		}
		if _, fixed := w.fixed[s.Name]; fixed {
			return
		}
		if v, ok = w.pass.guesses[s.Name]; ok {
			name = s.Name
		}
	})
	return name, v, ok
}

// takeGuess computes with a guess, until the thread leaves its path.
func (w *threadExec) takeGuess(name string, v symbolic.Value) {
	guesses := 0
	for i := len(w.choices) - 1; i >= 0; i-- {
		if w.choices[i].guess {
			if guesses++; guesses == maxGuesses {
				w.choices = slices.Delete(w.choices, i, i+1)
				break
			}
		}
	}
	w.tryWays([]func(*threadExec){
		func(w *threadExec) { w.fixSymbol(name, v) },
		func(w *threadExec) {
			w.refusedGuesses = maps.Clone(w.refusedGuesses)
			w.refusedGuesses[name] = true
		},
	}, true)
}

// substituteRegisters replaces chosen symbols in the registers by their values.
func (w *threadExec) substituteRegisters() {
	for i := 0; i < len(w.cells) && w.symbolicBytes > 0; i++ {
		c := w.cells[i]
		if c.Expr == nil || c.Byte != 0 && i > 0 && w.cells[i-1] == (symmem.Cell{Expr: c.Expr, Byte: c.Byte - 1}) {
			continue
		}
		settled := w.substituteFixed(c.Expr)
		if settled == c.Expr {
			continue
		}
		for k := i; k < len(w.cells) && w.cells[k] == (symmem.Cell{Expr: c.Expr, Byte: c.Byte + k - i}); k++ {
			w.replaceCell(k, settled)
		}
	}
}

func (w *threadExec) replaceCell(k int, e *symbolic.Expr) {
	if !e.IsConst() {
		w.cells[k].Expr = e
		return
	}
	b := symmem.BytesOf(e.Value)
	w.machine.State[k] = b[w.cells[k].Byte]
	w.cells[k] = symmem.Cell{}
	w.symbolicBytes--
}

// applyGuess substitutes the chosen values in an expression that does more than copying and
// testing; it requests a guess if one of its symbols has one.
func (r *round) applyGuess(e *symbolic.Expr) *symbolic.Expr {
	if e.Size() <= guessAbove || len(r.pass.guesses) == 0 || r.err != nil {
		return e
	}
	if e = r.substituteFixed(e); e.Size() <= guessAbove {
		return e
	}
	if name, v, ok := r.guessedSymbol(e); ok {
		r.err = errNeedsValue{name: name, values: []symbolic.Value{v}, guess: true}
	}
	return e
}

// likelyValuesFirst puts the value in the thread's own memory, and the guess, before the other
// values that a symbol may have.
func (b *pass) likelyValuesFirst(name string, all []symbolic.Value) []symbolic.Value {
	var first []symbolic.Value
	for _, of := range []map[string]symbolic.Value{b.ownValues, b.guesses} {
		if v, ok := of[name]; ok && !slices.Contains(first, v) {
			first = append(first, v)
		}
	}
	return append(first, slices.DeleteFunc(all, func(x symbolic.Value) bool { return slices.Contains(first, x) })...)
}
