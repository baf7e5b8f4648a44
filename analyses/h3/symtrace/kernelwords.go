package symtrace

import (
	"errors"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// The kernel's state of connections is in words of memory outside of any program: threads share
// them as they share variables, and the passes find out which.
const (
	kernelWords   = 1 << 48
	kernelObjects = kernelWords + 1<<40 // signals, which are objects and no words
	wordDistance  = 64                  // so that nothing shares a granule
	wordBits      = 64
)

// listening are the words of the socket that is listened on: how many connections
// were made, and how many of them accepted.
const (
	wordConnected = kernelWords
	wordAccepted  = kernelWords + wordDistance
)

// wordSent has how many bytes one side of a connection has sent, and closedBit when it
// sends no more; wordReceived how many of them were received.
func wordSent(connection, side uint64) uint64 {
	return kernelWords + (2+4*connection+2*side)*wordDistance
}

func wordReceived(connection, side uint64) uint64 { return wordSent(connection, side) + wordDistance }

const closedBit = wordBits - 1

// loadWord reads a word, and storeWord writes one.
func (w *threadExec) loadWord(addr uint64) *symbolic.Expr { return w.kernelLoad(addr, symmem.Granule) }

func (w *threadExec) storeWord(addr uint64, e *symbolic.Expr) { w.kernelStore(addr, e) }

// incrementWord adds one to a word atomically, and returns its old value.
func (w *threadExec) incrementWord(addr uint64) *symbolic.Expr {
	p := w.pass.pool
	have := w.substituteFixed(w.memory.Load(p, addr, symmem.Granule))
	if !w.pass.sharing.IsShared(addr, symmem.Granule) || have.IsConst() && w.pass.sharing.OnlyWriter(w.number, addr, symmem.Granule) {
		w.noteAccess(addr, symmem.Granule, false)
		w.storeWord(addr, p.Add(have, p.Word(1, wordBits)))
		return have
	}
	w.noteAccess(addr, symmem.Granule, true)
	w.kernelFence()
	s := w.kernelSymbol(addr, symmem.Granule)
	if have.IsConst() {
		w.pass.ownValues[s.Name] = have.Value
	}
	value := p.Add(s, p.Word(1, wordBits))
	w.memory.Store(addr, value)
	w.addEvent(model.Event{Kind: model.Update, Addr: addr, Size: symmem.Granule, Symbol: s, Value: value}, false)
	return s
}

// withEachValue continues with each value that a word may have, the most likely one first.
func (w *threadExec) withEachValue(e *symbolic.Expr, then func(*threadExec, uint64) error) error {
	if e = w.substituteFixed(e); e.IsConst() {
		return then(w, e.Value.Lo)
	}
	var name string
	symbolic.Symbols(e, func(s *symbolic.Expr) { name = s.Name })
	values := w.pass.preferredFirst(name, w.pass.likelyValuesFirst(name, w.pass.symbolValues(w, name)))
	if w.pass.symbolPlaces[name].addr == wordConnected {
		// Who leaves its path does so for another reason: it is the first one that is free.
		slices.SortStableFunc(values, func(x, y symbolic.Value) int { return w.pass.connectionRank(x.Lo) - w.pass.connectionRank(y.Lo) })
		values = values[:min(1, len(values))]
	}
	var ways []func(*threadExec)
	for _, v := range values {
		ways = append(ways, func(w *threadExec) {
			w.fixSymbol(name, v)
			w.deferredErr = then(w, w.substituteFixed(e).Value.Lo)
		})
	}
	return w.tryAlternatives(ways)
}

// connectionRank is 1 for a connection that a thread has made, and 0 for others.
func (b *pass) connectionRank(connection uint64) int {
	if b.connected[connection] {
		return 1
	}
	return 0
}

// tryAlternatives takes one of some ways to continue after a system call.
func (w *threadExec) tryAlternatives(ways []func(*threadExec)) error {
	if len(ways) == 0 {
		w.endUntilNextPass("it waits for an act of another thread that does not occur on that thread's path")
		return nil
	}
	w.tryWays(ways, false)
	return nil
}

// endUntilNextPass ends a path in this pass, as the interaction that it depends on is not known
// yet.
func (w *threadExec) endUntilNextPass(why string) {
	if w.offPathReason == nil {
		w.offPathReason = w.pathError(errors.New(why))
	}
	w.inSyscall, w.cutShort = false, true
	w.endPath(Cut)
}

// endIfBlocked ends a path in a call that is not over.
func (w *threadExec) endIfBlocked() bool {
	if _, more := w.path.PCAt(w.at); more {
		return false
	}
	w.inSyscall = false
	w.endPath(Cut)
	return true
}
