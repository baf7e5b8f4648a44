package symtrace

import (
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// What one thread writes once, and nobody else, has one value behind that. Another
// thread that reads it gets a symbol all the same, but one with a guess: as soon as
// more is computed with it than a comparison, it is that value, and this becomes a
// condition. So data that one thread hands over to another does not become symbols in
// every bit of what is made of it. If the thread does not come along its path then,
// the guess is taken back.

// guessAbove is how many operations an expression has that is computed with the
// guesses; smaller ones are copies and tests.
const guessAbove = 6

// maxGuesses is how many guesses of a thread can be taken back, the latest.
const maxGuesses = 32

// written is what is known of the bytes that threads write: the value of those that
// are written once.
type written map[uint64]onceWritten

type onceWritten struct {
	value byte
	once  bool
}

// writes finds what was written, by byte.
func (b *builder) writes() written {
	all := written{}
	for _, w := range b.walkers {
		for i := range w.events {
			e := &w.events[i]
			if !e.Kind.Writes() || e.Index != nil {
				continue
			}
			value := bytesOf(e.Value.Value)
			for k := range e.Size {
				_, again := all[e.Addr+uint64(k)]
				all[e.Addr+uint64(k)] = onceWritten{value[k], e.Value.IsConst() && !again}
			}
		}
	}
	return all
}

// guess notes what a symbol for some bytes is if all were written that ever are.
func (b *builder) guess(name string, addr uint64, size int) {
	var content [16]byte
	any := false
	b.image.peek(addr, content[:size])
	for i := range size {
		w, ok := b.written[addr+uint64(i)]
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
	b.guesses[name] = valueOf(content[:size])
	if v, ok := b.options.Prefer[name]; ok {
		b.guesses[name] = v
	}
}

// guessed finds a symbol of an expression that has a guess.
func (w *walker) guessed(e *symbolic.Expr) (name string, v symbolic.Value, ok bool) {
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		if ok || w.refused[s.Name] {
			return
		}
		if _, fixed := w.fixed[s.Name]; fixed {
			return
		}
		if v, ok = w.b.guesses[s.Name]; ok {
			name = s.Name
		}
	})
	return name, v, ok
}

// take computes with a guess, until the thread leaves its path.
func (w *walker) take(name string, v symbolic.Value) {
	guesses := 0
	for i := len(w.choices) - 1; i >= 0; i-- {
		if w.choices[i].guess {
			if guesses++; guesses == maxGuesses {
				w.choices = slices.Delete(w.choices, i, i+1)
				break
			}
		}
	}
	w.choose([]func(*walker){
		func(w *walker) { w.fix(name, v) },
		func(w *walker) {
			w.refused = maps.Clone(w.refused)
			w.refused[name] = true
		},
	}, true)
}

// settleRegisters puts what was chosen into the registers.
func (w *walker) settleRegisters() {
	for i := 0; i < len(w.cells) && w.unknown > 0; i++ {
		c := w.cells[i]
		if c.e == nil || c.at != 0 && i > 0 && w.cells[i-1] == (cell{c.e, c.at - 1}) {
			continue
		}
		settled := w.settled(c.e)
		if settled == c.e {
			continue
		}
		for k := i; k < len(w.cells) && w.cells[k] == (cell{c.e, c.at + k - i}); k++ {
			w.settleCell(k, settled)
		}
	}
}

func (w *walker) settleCell(k int, e *symbolic.Expr) {
	if !e.IsConst() {
		w.cells[k].e = e
		return
	}
	b := bytesOf(e.Value)
	w.machine.State[k] = b[w.cells[k].at]
	w.cells[k] = cell{}
	w.unknown--
}

// computed is an expression that more is done with than copying and testing, with what
// was chosen for its symbols; it asks for a guess if there is one.
func (r *round) computed(e *symbolic.Expr) *symbolic.Expr {
	if e.Size() <= guessAbove || len(r.b.guesses) == 0 || r.err != nil {
		return e
	}
	if e = r.settled(e); e.Size() <= guessAbove {
		return e
	}
	if name, v, ok := r.guessed(e); ok {
		r.err = errChoose{name: name, values: []symbolic.Value{v}, guess: true}
	}
	return e
}

// likelyFirst puts what the thread itself knows of a symbol's place, and the guess,
// before the other values that it may have.
func (b *builder) likelyFirst(name string, all []symbolic.Value) []symbolic.Value {
	var first []symbolic.Value
	for _, of := range []map[string]symbolic.Value{b.seen, b.guesses} {
		if v, ok := of[name]; ok && !slices.Contains(first, v) {
			first = append(first, v)
		}
	}
	return append(first, slices.DeleteFunc(all, func(x symbolic.Value) bool { return slices.Contains(first, x) })...)
}
