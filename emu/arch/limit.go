package arch

import (
	"iter"
)

// Limit is the budget of one run. Zero numbers mean no limit.
type Limit struct {
	Instructions uint64
	Cycles       Cycles
	// Exact ends the run at the first instruction at or after a limit, which for Instructions is
	// exactly the limit. Otherwise the run ends at the next start of a block, which is cheaper.
	Exact bool
	// Inside is the place inside an instruction where the run may end if a budget does. Immediately
	// means a budget of 0 instructions. From is the instruction that the thread is inside at the
	// start of the run; nil: none.
	Inside      Inside
	Immediately bool
	From        *Interrupted
	// Most is a limit of instructions that is exact, whatever the other fields are; 0 and the
	// greatest number mean no limit.
	Most uint64
	// AtPause and AtSync also end the run after a PAUSE, and before atomic instructions and fences.
	AtPause, AtSync bool
	// PauseAfter is the smallest number of instructions of the run, with the PAUSE, after which a
	// PAUSE ends it.
	PauseAfter uint64
	// Pass ignores a breakpoint, and AtSync, at the first instruction.
	Pass bool
}

// Inside is a place inside an instruction where a run may end: between two of its accesses to
// memory, so that other cores can run there. The zero value means that the run does not end inside
// an instruction.
//
// The accesses of an instruction are its loads, then its stores; one that lies in two cache lines
// is two. Atomic instructions (LOCK, XCHG) have no place inside, nor have instructions with
// operands of more than 16 bytes and those with accesses that their operands do not name (ENTER,
// LEAVE, XLAT, MASKMOVDQU, moves under masks, gathering loads, far branches). If stores wait in buffers, there is no place between two
// stores of an instruction: commits make each visible.
type Inside uint32

// InsideExactly marks a place given by the number of accesses in the other bits.
const InsideExactly Inside = 1 << 31

// insideByChance keeps a random choice from being 0.
const insideByChance = 1 << 30

// InsideAfter is the place after a number of accesses of the instruction before which the budget of
// instructions ends.
func InsideAfter(accesses uint8) Inside { return InsideExactly | Inside(accesses) }

// InsideByChance chooses the place by a random number: the place before the instruction and those
// inside it are equally likely. A thread that is already inside an instruction stays there for one
// access more with probability 1/4. A budget of cycles ends inside an instruction if there is time
// for some of its accesses but not for all of it.
func InsideByChance(random uint32) Inside {
	return Inside(random)&^InsideExactly | insideByChance
}

// MaxPieces is the largest number of accesses of an instruction that has places inside.
const MaxPieces = 8

// Interrupted is the state of a thread that is inside an instruction. It is plain data with the
// layout of struct heddle_inside, which engines in C use.
//
// Until a store is done, the thread's registers are those before the instruction, and the loaded
// bytes are kept. If the thread is interrupted (it has another program counter when it runs again),
// the instruction starts again. Once a store is done, the registers are those after the
// instruction, which retires when all stores are done.
type Interrupted struct {
	PC Addr
	// Total is the number of accesses, loads first, and Loads the number of loads; a Total of 0
	// means that the thread is inside no instruction. Places is one more than the number of places
	// inside the instruction, Performed the number of accesses that are done.
	Total, Loads, Places, Performed uint32
	// Executed is 1 once the instruction has stored something.
	Executed uint32
	_        uint32
	// Cost is the instruction's cost in cycles, Paid the part that was charged to the run that
	// ended inside it.
	Cost, Paid uint32
	// Branches is the engine's count of branches before the accesses.
	Branches uint64
	// Saved has the registers before the instruction, once it is executed.
	Saved  Regs
	Pieces [MaxPieces]Piece
}

// Piece is a load or store, or the part of one that lies in one cache line: a part of an
// instruction's accesses that becomes visible at once.
type Piece struct {
	Addr Addr
	// Bytes has the bytes that were loaded or wait to be stored: the first Size.
	Bytes [16]byte
	Size  uint32
	// Stores is 1 for a store.
	Stores uint32
}

// IsInside reports whether the thread is inside an instruction.
func (i *Interrupted) IsInside() bool { return i.Total != 0 }

// Done returns the number of accesses that are done.
func (i *Interrupted) Done() uint8 { return uint8(i.Performed) }

// HasStored reports whether the instruction has stored something, so that it must be completed
// before anything else happens to its thread.
func (i *Interrupted) HasStored() bool { return i.Executed != 0 }

// Before returns the registers before the instruction, and whether it has stored something. If so,
// the thread's registers are those after the instruction.
func (i *Interrupted) Before() (Regs, bool) { return i.Saved, i.HasStored() }

// Stores iterates over the address and the bytes of each remaining store of the instruction, if it
// has stored something.
func (i *Interrupted) Stores() iter.Seq2[Addr, []byte] {
	return func(yield func(Addr, []byte) bool) {
		for k := i.Performed; i.HasStored() && k < i.Total; k++ {
			p := &i.Pieces[k]
			if !yield(p.Addr, p.Bytes[:p.Size]) {
				return
			}
		}
	}
}
