package pathsearch

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// route is the path of a thread.
type route struct {
	thread arch.ThreadID
	pcs    []arch.Addr
	// places are the indices of the instructions before which the thread stops, in ascending order.
	places []int
	// repeated are the indices of the string instructions with a repeating prefix, in ascending order.
	repeated []int
}

// nextRepeated is the first index from one on of a repeated instruction, or the end of the path.
func (r *route) nextRepeated(from int) int {
	i, _ := slices.BinarySearch(r.repeated, from)
	if i == len(r.repeated) {
		return len(r.pcs)
	}
	return r.repeated[i]
}

// nextPlace is the first place after an instruction, or the end of the path.
func (r *route) nextPlace(after int) int {
	i, _ := slices.BinarySearch(r.places, after+1)
	if i == len(r.places) {
		return len(r.pcs)
	}
	return r.places[i]
}

// turn is a part of a thread's path that it executed on a core without another thread in between.
type turn struct {
	route int // of the thread
	// end is the index of the instruction after the turn in the path.
	end int
	// started is how many instructions the core had executed before.
	started uint64
	length  int
}

// recorded is the paths of a run: those of the threads, and the turns of each core in their order.
type recorded struct {
	routes []route
	cores  []coreTurns
	// firstCore is where the first thread began.
	firstCore arch.CoreID
}

type coreTurns struct {
	core  arch.CoreID
	turns []turn
}

// mostInstructions bounds the paths of a problem, in instructions of all threads.
const mostInstructions = 20_000_000

// newRecorded takes the paths of a profile; not ok: they are longer than mostInstructions.
func newRecorded(p *paths.Profile) (r *recorded, ok bool) {
	r = &recorded{}
	total := 0
	for i := range p.Threads {
		t := &p.Threads[i]
		x := route{thread: t.ID}
		for _, s := range t.Turns {
			from := len(x.pcs)
			for _, b := range s.Blocks {
				for _, pc := range p.Blocks[b].Instructions {
					x.pcs = append(x.pcs, arch.Addr(pc))
				}
			}
			if total += len(x.pcs) - from; total > mostInstructions {
				return nil, false
			}
			r.addTurn(s.Core, turn{route: i, end: len(x.pcs), started: s.CoreInstructions, length: len(x.pcs) - from})
		}
		r.routes = append(r.routes, x)
	}
	if len(r.cores) > 0 {
		r.firstCore = r.cores[0].core
	}
	for i := range r.cores {
		slices.SortStableFunc(r.cores[i].turns, func(a, b turn) int { return int(int64(a.started) - int64(b.started)) })
	}
	return r, true
}

func (r *recorded) addTurn(core arch.CoreID, t turn) {
	i := slices.IndexFunc(r.cores, func(c coreTurns) bool { return c.core == core })
	if i < 0 {
		i = len(r.cores)
		r.cores = append(r.cores, coreTurns{core: core})
	}
	r.cores[i].turns = append(r.cores[i].turns, t)
}

// setPlaces has the threads stop before the instructions of a set, by address.
func (r *recorded) setPlaces(at map[arch.Addr]bool) {
	for i := range r.routes {
		x := &r.routes[i]
		x.places = x.places[:0]
		for k, pc := range x.pcs {
			if at[pc] {
				x.places = append(x.places, k)
			}
		}
	}
}

// setRepeated finds the repeated instructions.
func (r *recorded) setRepeated(repeats func(arch.Addr) bool) {
	known := map[arch.Addr]bool{}
	for i := range r.routes {
		x := &r.routes[i]
		for k, pc := range x.pcs {
			is, asked := known[pc]
			if !asked {
				is = repeats(pc)
				known[pc] = is
			}
			if is {
				x.repeated = append(x.repeated, k)
			}
		}
	}
}
