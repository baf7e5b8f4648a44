package memmodel

import (
	"strings"
)

// Model is a memory model.
type Model uint8

// The models. SC: stores are seen by all at once, in the order of the program
// (Lamport 1979). TSO: stores wait in a queue; the order of x86 processors
// (Owens, Sarkar, Sewell, "A better x86 memory model: x86-TSO", TPHOLs 2009).
// PSO: only stores to one place stay in order (SPARC V8 manual, appendix K;
// Adve and Gharachorloo, "Shared memory consistency models: a tutorial", 1996).
const (
	SC Model = iota
	TSO
	PSO
)

var modelNames = []string{"sc", "tso", "pso"}

// Names lists the models from the strongest to the weakest.
func Names() []string { return modelNames }

// Models lists the models from the strongest to the weakest.
func Models() []Model { return []Model{SC, TSO, PSO} }

// String is the model's name in configurations.
func (m Model) String() string { return modelNames[m] }

// Parse finds a model by name; ok is false for an unknown one.
func Parse(name string) (m Model, ok bool) {
	for i, n := range modelNames {
		if strings.EqualFold(n, name) {
			return Model(i), true
		}
	}
	return SC, false
}

// MaxStore is the greatest size of one store in bytes.
const MaxStore = 16

// Entry is a waiting store, or a fence in a buffer: stores after it are
// committed after those in front of it. A store that lies in two cache lines is
// two entries, unless it is that of an atomic instruction.
type Entry struct {
	Addr uint64
	Size uint8
	Data [MaxStore]byte
	// Weak is a store with a non-temporal hint, which does not keep the order
	// of stores under TSO (SDM volume 3, 8.2.2).
	Weak  bool
	Fence bool
}

func (e *Entry) overlaps(o *Entry) bool {
	return e.Addr < o.Addr+uint64(o.Size) && o.Addr < e.Addr+uint64(e.Size)
}

// MayCommit reports whether entry k of a buffer, oldest first, may be committed
// now. A fence is no store; DropFences takes it away.
func (m Model) MayCommit(buffer []Entry, k int) bool {
	e := &buffer[k]
	if e.Fence {
		return false
	}
	for i := range buffer[:k] {
		if o := &buffer[i]; o.Fence || o.overlaps(e) || m == SC || m == TSO && !o.Weak && !e.Weak {
			return false
		}
	}
	return true
}

// DropFences removes the fences that have no store in front of them.
func DropFences(buffer []Entry) []Entry {
	for len(buffer) > 0 && buffer[0].Fence {
		buffer = buffer[1:]
	}
	return buffer
}

// Overlay lays the waiting stores over memory, which begins at base: the view of
// the buffer's core.
func Overlay(memory []byte, base uint64, buffer []Entry) {
	end := base + uint64(len(memory))
	for i := range buffer {
		e := &buffer[i]
		for k := range uint64(e.Size) {
			if at := e.Addr + k; at >= base && at < end {
				memory[at-base] = e.Data[k]
			}
		}
	}
}
