package windows

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// hiddenState is the memory that has kept windows from following stored schedules: state that survives windows and
// decides branches or addresses (TERN, section 6).
type hiddenState struct {
	windows   map[word]int // how many windows each word has refused
	places    map[word]string
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
	// Place is the file, the heap or the stack that it is in, with the offset.
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
			h.places[w] = d.placeOf(w)
		}
	}
}

// placeOf names the file or the area that a word is in.
func (d *Driver) placeOf(w word) string {
	for _, p := range d.service().Processes() {
		if p.PID() != w.process || p.Space() == nil {
			continue
		}
		if v, ok := p.Space().Find(w.at); ok {
			if v.File == nil {
				return fmt.Sprintf("memory at %#x+%#x", uint64(v.Start), uint64(w.at-v.Start))
			}
			path, _, _ := v.File.MapName()
			return fmt.Sprintf("%s+%#x", filepath.Base(path), v.Offset+uint64(w.at-v.Start))
		}
	}
	return ""
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
