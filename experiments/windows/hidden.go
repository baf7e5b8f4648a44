package windows

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// hiddenState is the memory that has kept windows from following stored schedules: state that survives windows and
// decides branches or addresses (TERN, section 6).
type hiddenState struct {
	windows   map[word]int // how many windows each word has refused
	places    map[word]place
	names     placeNames
	registers int // windows that only registers have refused
	// undeclared counts the windows that only memory has refused which is not declared.
	undeclared int
}

// place is the name of a word, and whether it is of state that the program has declared.
type place struct {
	name     string
	declared bool
}

// word is eight bytes of a process.
type word struct {
	process int32
	at      arch.Addr
}

// Hidden is a word of memory that has kept windows from following stored schedules.
type Hidden struct {
	Process int32  `json:"process"`
	Addr    uint64 `json:"addr"`
	// Place is the variable, the block of the heap with the place that has allocated it, or the area that it is in.
	Place   string `json:"place"`
	Windows int    `json:"windows"`
	// Declared: the program has declared it by heddle_state of heddle.h, and Place is the name that it has given, with the offset.
	Declared bool `json:"declared,omitempty"`
}

const wordBytes = 8

// noteObstacles notes the memory that keeps a window from following a schedule whose other preconditions it satisfies.
func (d *Driver) noteObstacles(a *windows.Admission) {
	h := &d.hidden
	if h.windows == nil {
		h.windows, h.places = map[word]int{}, map[word]place{}
	}
	list, registers, found := d.store.Obstacles(a)
	if !found && registers {
		h.registers++
	}
	last, known := word{}, false
	for _, o := range list {
		w := word{o.Process, o.At &^ (wordBytes - 1)}
		if w == last {
			continue
		}
		last = w
		if h.windows[w]++; h.windows[w] == 1 {
			name, declared := d.placeOf(o)
			h.places[w] = place{name, declared}
		}
		known = known || h.places[w].declared
	}
	if len(list) > 0 && !known {
		h.undeclared++
	}
}

// list has the words that have refused the most windows first.
func (h *hiddenState) list() (list []Hidden) {
	for w, n := range h.windows {
		list = append(list, Hidden{w.process, uint64(w.at), h.places[w].name, n, h.places[w].declared})
	}
	slices.SortFunc(list, func(a, b Hidden) int {
		return cmp.Or(cmp.Compare(b.Windows, a.Windows), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Addr, b.Addr))
	})
	return list
}
