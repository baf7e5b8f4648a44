package explore

import (
	"math/rand/v2"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// Op is an instruction: an event of the model, or a branch.
type Op struct {
	Kind model.Kind
	// Branch, instead of Kind: skip the next Skip instructions if the register is
	// Value.
	Branch bool
	Skip   int
	// Addr and Size of an access. A Read puts its value into the register Reg, an Update adds Value
	// to memory and puts the old value into Reg; a Write stores Value, plus the register if Plus.
	Addr, Size int
	Reg        int
	Value      uint64
	Plus       bool
	// Object of a synchronization operation.
	Object int
	Count  int
}

// Program has the code of each thread. Memory is zero at the begin.
type Program struct {
	Threads [][]Op
	// Units are the semaphores' first values, by object.
	Units map[int]int
}

const (
	registers = 2
	places    = 4 // bytes of memory
)

// Objects of random programs.
const (
	mutex = iota + 1
	condition
	semaphore
	barrier
)

// Random draws a program of two or three threads with up to length instructions
// each.
func Random(r *rand.Rand, length int) *Program {
	p := &Program{Units: map[int]int{semaphore: r.IntN(2)}}
	threads := 2 + r.IntN(2)
	synchronizes := r.IntN(3) == 0
	meets := r.IntN(6) == 0
	for range threads {
		var code []Op
		n := 2 + r.IntN(length-1)
		at := -1
		if meets {
			at = r.IntN(n)
		}
		for i := range n {
			group := []Op{drawInstruction(r)}
			if synchronizes && r.IntN(3) == 0 {
				group = drawSynchronization(r)
			}
			if i == at {
				group = []Op{{Kind: model.Arrive, Object: barrier, Count: threads}, {Kind: model.Leave, Object: barrier}}
			}
			if last := len(code) - 1; last >= 0 && code[last].Branch {
				code[last].Skip = len(group)
			}
			code = append(code, group...)
		}
		p.Threads = append(p.Threads, code)
	}
	return p
}

// drawAccess draws a place and a size: bytes, and the first two as one.
func drawAccess(r *rand.Rand, o Op) Op {
	o.Addr, o.Size = r.IntN(places-1), 1
	if r.IntN(4) == 0 {
		o.Addr, o.Size = 0, 2
	}
	o.Reg = r.IntN(registers)
	o.Value = uint64(1 + r.IntN(3))
	return o
}

func drawInstruction(r *rand.Rand) Op {
	switch k := r.IntN(20); {
	case k < 7:
		return drawAccess(r, Op{Kind: model.Read})
	case k < 13:
		return drawAccess(r, Op{Kind: model.Write, Plus: r.IntN(3) == 0})
	case k < 14:
		return drawAccess(r, Op{Kind: model.Update})
	case k < 15:
		return Op{Kind: model.Fence}
	case k < 16:
		return Op{Kind: model.StoreFence}
	}
	return Op{Branch: true, Skip: 1, Reg: r.IntN(registers), Value: uint64(r.IntN(2))}
}

func drawSynchronization(r *rand.Rand) []Op {
	lock, unlock := Op{Kind: model.Lock, Object: mutex}, Op{Kind: model.Unlock, Object: mutex}
	switch k := r.IntN(12); {
	case k < 5:
		return []Op{lock, drawAccess(r, Op{Kind: model.Read}), drawAccess(r, Op{Kind: model.Write, Plus: true}), unlock}
	case k < 6:
		lock.MakeShared(&unlock)
		return []Op{lock, drawAccess(r, Op{Kind: model.Read}), unlock}
	case k < 7:
		return []Op{{Kind: model.Take, Object: semaphore}}
	case k < 9:
		return []Op{{Kind: model.Post, Object: semaphore}}
	case k < 10:
		return []Op{lock, {Kind: model.Sleep, Object: condition}, unlock, {Kind: model.Wake, Object: condition}, lock, unlock}
	case k < 11:
		return []Op{{Kind: model.Signal, Object: condition}}
	}
	return []Op{{Kind: model.Broadcast, Object: condition}}
}

// MakeShared makes the lock and its unlock those of a reader.
func (o *Op) MakeShared(unlock *Op) { o.Plus, unlock.Plus = true, true }
