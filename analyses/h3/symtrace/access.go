package symtrace

import (
	"errors"
	"math/bits"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// target is the destination of an access: an address, or an element of an array.
type target struct {
	addr  uint64
	index *symbolic.Expr
}

// loadFrom returns the value that a load reads.
func (r *round) loadFrom(at *symbolic.Expr, size int) *symbolic.Expr {
	to, ok := r.resolveAddress(at, size)
	if !ok {
		return r.pass.pool.Word(0, 8*size)
	}
	return r.readTarget(to, size)
}

// maxOwnSize is the size of expressions of its own that a thread reads back from shared
// memory: a larger one gets a symbol, so that expressions do not grow without end.
const maxOwnSize = 16

func (r *round) readTarget(to target, size int) *symbolic.Expr {
	r.countAccess(to, size)
	r.noteAccess(to.addr, size, false)
	if to.index == nil {
		have := r.substituteFixed(r.memory.Load(r.pass.pool, to.addr, size))
		own := !r.block.locked[r.begun] && have.Size() <= maxOwnSize && r.hasOwnValue(to.addr, size)
		if own || !r.pass.sharing.IsShared(to.addr, size) {
			return have
		}
	}
	s := r.nextSymbol(8 * size)
	r.pass.symbolBits[s.Name], r.pass.symbolPlaces[s.Name] = s.Bits, symbolPlace{to.addr, size}
	if r.block.locked[r.begun] {
		r.lockedAddr, r.lockedRead = to.addr, s
		return s
	}
	delete(r.pass.guesses, s.Name)
	delete(r.pass.ownValues, s.Name)
	if to.index == nil {
		if have := r.memory.Load(r.pass.pool, to.addr, size); have.IsConst() {
			r.pass.ownValues[s.Name] = have.Value
		}
	}
	if to.index == nil && !r.pass.options.NoGuesses {
		r.pass.recordGuess(s.Name, to.addr, size)
	}
	r.addEvent(model.Event{Kind: model.Read, Addr: to.addr, Size: size, Index: to.index, Symbol: s}, false)
	r.coordinates[len(r.coordinates)-1].Accesses = r.accessesDone()
	return s
}

// countAccess counts an access of the present instruction.
func (r *round) countAccess(to target, size int) {
	r.accesses++
	r.pieces++
	if to.index == nil && to.addr/arch.LineSize != (to.addr+uint64(size)-1)/arch.LineSize {
		r.pieces++
	}
}

// accessesDone is how many accesses of the present instruction are done, if more are to come between
// which others may act.
func (r *round) accessesDone() uint8 {
	if r.block.locked[r.begun] || r.accesses == r.block.accesses[r.begun] {
		return 0
	}
	return uint8(r.pieces)
}

func (r *round) storeTo(at, e *symbolic.Expr) {
	if e.Bits%8 != 0 {
		e = r.pass.pool.ZeroExt(e, (e.Bits+7)/8*8)
	}
	if to, ok := r.resolveAddress(at, e.Bits/8); ok {
		r.writeTarget(to, e)
	}
}

func (r *round) writeTarget(to target, e *symbolic.Expr) {
	size := e.Bits / 8
	r.countAccess(to, size)
	r.noteAccess(to.addr, size, true)
	if to.index == nil {
		r.stored = append(r.stored, storedValue{to.addr, r.memory.Load(r.pass.pool, to.addr, size)})
		r.memory.Store(to.addr, e)
		if !r.pass.sharing.IsShared(to.addr, size) {
			return
		}
	}
	r.addEvent(model.Event{Kind: model.Write, Addr: to.addr, Size: size, Index: to.index, Value: r.substituteFixed(e)}, false)
	r.coordinates[len(r.coordinates)-1].Accesses = r.accessesDone()
}

// lowest is the first address at which a program can have memory (vm.mmap_min_addr). A thread that
// continues has not followed a null pointer.
const lowest = 1 << 16

// pathContinues reports whether the path has an instruction after the present one.
func (r *round) pathContinues() bool {
	_, more := r.path.PCAt(r.path.Advance(r.from, r.begun))
	return more
}

// resolveAddress finds the target of an access; false: it has set an error.
func (r *round) resolveAddress(at *symbolic.Expr, size int) (target, bool) {
	if r.err != nil {
		return target{}, false
	}
	if at = r.substituteFixed(at); at.IsConst() {
		if r.faulting && !r.pass.image.isMapped(at.Value.Lo) && !r.pass.isAllocated(at.Value.Lo) {
			r.err = errFault{}
			return target{}, false
		}
		if at.Value.Lo < lowest && r.pathContinues() {
			r.err = errOffPath{why: "it would fault"}
			return target{}, false
		}
		return r.pass.targetOf(at.Value.Lo, size), true
	}
	if r.faulting || r.pass.options.Fault && !r.pathContinues() {
		r.err = errFault{r.pass.unmappedCondition(at)}
		return target{}, false
	}
	o, ok := r.pass.baseObject(at)
	if !ok || r.forcedOntoPath > 0 || !r.pass.declareArray(o, size) {
		r.requestValue(at)
		return target{}, false
	}
	p := r.pass.pool
	index := p.LShr(p.Sub(at, p.Word(o.Addr, 64)), p.Word(uint64(bits.TrailingZeros(uint(size))), 64))
	if count := o.Size / uint64(size); !r.pass.pool.IsBelow(index, count, r.pass.namedExprs) {
		if r.err = r.assumeCondition(p.ULT(index, p.Word(count, 64))); r.err != nil {
			return target{}, false
		}
	}
	return target{o.Addr, index}, true
}

// guardedLoad is a load with a condition.
func (r *round) guardedLoad(s *vex.LoadG) {
	if !r.isTrue(r.operandValue(s.Guard)) {
		r.temps[s.Temp] = r.operandValue(s.Alt)
		return
	}
	e, to := r.loadFrom(r.operandValue(s.Addr), s.Cvt.Type().Bytes()), r.block.Types[s.Temp].Bits()
	if s.Cvt.Signed() {
		r.temps[s.Temp] = r.pass.pool.SignExt(e, to)
	} else {
		r.temps[s.Temp] = r.pass.pool.ZeroExt(e, to)
	}
}

// compareExchange is a locked instruction: it reads and writes as one.
func (r *round) compareExchange(s *vex.CAS) {
	if s.ExpectedHi != nil {
		r.failWith(errors.New("a compare-and-exchange of 16 bytes depends on the schedule, which is not supported"))
		return
	}
	p := r.pass.pool
	size := r.block.Types[s.OldLo].Bytes()
	to, ok := r.resolveAddress(r.operandValue(s.Addr), size)
	if !ok {
		r.temps[s.OldLo] = p.Word(0, 8*size)
		return
	}
	expected, data := r.operandValue(s.ExpectedLo), r.operandValue(s.DataLo)
	if to.index == nil && !r.pass.sharing.IsShared(to.addr, size) {
		old := r.readTarget(to, size)
		r.temps[s.OldLo] = old
		r.writeTarget(to, p.Ite(p.Eq(old, expected), data, old))
		r.addEvent(model.Event{Kind: model.Fence}, false)
		return
	}
	old := r.lockedRead
	if old == nil || old.Bits != 8*size || r.lockedAddr != to.addr {
		old = r.readTarget(to, size)
	}
	r.temps[s.OldLo] = old
	value := r.substituteFixed(p.Ite(p.Eq(old, expected), data, old))
	r.noteAccess(to.addr, size, true)
	if to.index == nil {
		r.stored = append(r.stored, storedValue{to.addr, r.memory.Load(p, to.addr, size)})
		r.memory.Store(to.addr, value)
	}
	r.addEvent(model.Event{Kind: model.Update, Addr: to.addr, Size: size, Index: to.index, Symbol: old, Value: value}, false)
}
