package arch

import (
	"iter"
)

// Limit is the budget of one run. Zero numbers mean no limit.
type Limit struct {
	Instructions uint64
	Cycles       Cycles
	// Exact stops at the first instruction at or after a limit, which for
	// Instructions means exactly there; otherwise the run ends at the first
	// block boundary, which is cheaper.
	Exact bool
	// Inside says where inside an instruction the run may end if a budget does. With
	// Immediately the budget of instructions is 0. From is the instruction that the thread
	// is inside at its begin; nil: none.
	Inside      Inside
	Immediately bool
	From        *Interrupted
	// Most is a limit of instructions that is exact, whatever the others are;
	// the greatest number means none, too.
	Most uint64
	// AtPause and AtSync also stop after a PAUSE, and before atomic
	// instructions and fences.
	AtPause, AtSync bool
	// PauseAfter is how many instructions the run has with the first PAUSE that ends it, at
	// least.
	PauseAfter uint64
	// Pass lets the first instruction run whatever breakpoint is on it and
	// whether or not it is one to stop before.
	Pass bool
}

// Inside is the place inside an instruction where a run may end: between two of its accesses
// to memory, so that other cores act there. The zero value means nowhere.
//
// The accesses of an instruction are its loads, then its stores; one that lies in two cache
// lines is two. Instructions that are atomic (LOCK, XCHG) have no place inside, nor have
// those with operands of more than 16 bytes and a few with accesses that their operands do
// not name (ENTER, LEAVE, XLAT, MASKMOVDQU, far branches). Where stores wait in buffers,
// there is no place between two stores of an instruction: they become visible apart by
// commits.
type Inside uint32

// InsideExactly marks a place that is the number of accesses given in the other bits.
const InsideExactly Inside = 1 << 31

// insideByChance makes each random number one that is not 0.
const insideByChance = 1 << 30

// InsideAfter is the place after this many accesses of the instruction before which the
// budget of instructions ends.
func InsideAfter(accesses uint8) Inside { return InsideExactly | Inside(accesses) }

// InsideByChance leaves the place to a random number, for which the place before the
// instruction and those inside it are equally likely. A thread that is inside an instruction
// already stays there for one access more one time in four. A budget of cycles ends inside an
// instruction if there is time for some of its accesses and not for all of it.
func InsideByChance(random uint32) Inside {
	return Inside(random)&^InsideExactly | insideByChance
}

// MaxPieces is the greatest number of accesses of an instruction that has places inside.
const MaxPieces = 8

// Interrupted is a thread that is inside an instruction. It is plain data, laid out as the
// engines have it in C (struct heddle_inside).
//
// Until a store is done, the thread's registers are those before the instruction, and the
// bytes that were loaded are kept. If the thread is interrupted (its program counter is another
// when it runs again), the instruction begins anew. Once a store is done the registers are those
// after the instruction, which counts as retired when all stores are done.
type Interrupted struct {
	PC Addr
	// Total is the number of accesses, loads first, Loads how many are loads; a Total of 0
	// means that the thread is inside no instruction. Places is one more than the number of
	// places inside the instruction, Performed the number of accesses that are done.
	Total, Loads, Places, Performed uint32
	// Executed is 1 once the instruction has stored something.
	Executed uint32
	_        uint32
	// Cost is the instruction's cost in cycles, Paid the part that the run was charged
	// before it ended.
	Cost, Paid uint32
	// Branches is the engine's count of branches when the accesses were reached.
	Branches uint64
	// Saved are the registers before the instruction, once it is executed.
	Saved  Regs
	Pieces [MaxPieces]Piece
}

// Piece is a load or store, or the part of one that lies in one cache line: a part of an
// instruction's accesses that other cores see at once.
type Piece struct {
	Addr Addr
	// Bytes were loaded, or wait to be stored: the first Size.
	Bytes [16]byte
	Size  uint32
	// Stores is 1 for a store.
	Stores uint32
}

// IsInside reports whether the thread is inside an instruction.
func (i *Interrupted) IsInside() bool { return i.Total != 0 }

// Done is the number of accesses of the instruction that are done.
func (i *Interrupted) Done() uint8 { return uint8(i.Performed) }

// HasStored reports whether the instruction has stored something already, so that it must be
// completed before anything else happens to its thread.
func (i *Interrupted) HasStored() bool { return i.Executed != 0 }

// Before are the registers before the instruction, if it has stored something: those of the
// thread are the ones after it then.
func (i *Interrupted) Before() (Regs, bool) { return i.Saved, i.HasStored() }

// Stores iterates over the stores of the instruction that are not done yet, if it has done one:
// the address and the bytes of each.
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
