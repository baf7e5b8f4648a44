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
	places    map[word]string
	names     placeNames
	registers int // windows that only registers have refused
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
}

const wordBytes = 8

// noteObstacles notes the memory that keeps a window from following a schedule whose other preconditions it satisfies.
func (d *Driver) noteObstacles(a *windows.Admission) {
	h := &d.hidden
	if h.windows == nil {
		h.windows, h.places = map[word]int{}, map[word]string{}
	}
	list, registers, found := d.store.Obstacles(a)
	if !found && registers {
		h.registers++
	}
	last := word{}
	for _, o := range list {
		w := word{o.Process, o.At &^ (wordBytes - 1)}
		if w == last {
			continue
		}
		last = w
		if h.windows[w]++; h.windows[w] == 1 {
			h.places[w] = d.placeOf(o)
		}
	}
}

// list has the words that have refused the most windows first.
func (h *hiddenState) list() (list []Hidden) {
	for w, n := range h.windows {
		list = append(list, Hidden{w.process, uint64(w.at), h.places[w], n})
	}
	slices.SortFunc(list, func(a, b Hidden) int {
		return cmp.Or(cmp.Compare(b.Windows, a.Windows), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Addr, b.Addr))
	})
	return list
}
