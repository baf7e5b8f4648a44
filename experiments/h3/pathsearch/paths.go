package pathsearch

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// code is the instructions of all paths: each address once, in the order in which they were met.
type code struct {
	addrs  []arch.Addr
	blocks [][]int32 // of each block of the profile its instructions, as indices of addrs; nil: not met yet
}

// instructionsOf are a block's instructions, as indices of addrs.
func (c *code) instructionsOf(p *paths.Profile, block int32, known map[uint64]int32) []int32 {
	if c.blocks[block] == nil {
		for _, pc := range p.Blocks[block].Instructions {
			n, ok := known[pc]
			if !ok {
				n = int32(len(c.addrs))
				known[pc] = n
				c.addrs = append(c.addrs, arch.Addr(pc))
			}
			c.blocks[block] = append(c.blocks[block], n)
		}
	}
	return c.blocks[block]
}

// are returns, of each instruction, whether it is one of those that a function says.
func (c *code) are(is func(arch.Addr) bool) []bool {
	all := make([]bool, len(c.addrs))
	for i, pc := range c.addrs {
		all[i] = is(pc)
	}
	return all
}

// route is the path of a thread.
type route struct {
	thread arch.ThreadID
	code   *code
	path   []int32 // indices of addrs in code
	// places are the indices of the instructions before which the thread stops, in ascending order.
	places []int
	// repeated are the indices of the string instructions with a repeating prefix, in ascending order.
	repeated []int
}

// pc is an instruction of the path.
func (r *route) pc(i int) arch.Addr { return r.code.addrs[r.path[i]] }

// find is the index of the first instruction at an address, or -1.
func (r *route) find(pc arch.Addr) int {
	return slices.IndexFunc(r.path, func(n int32) bool { return r.code.addrs[n] == pc })
}

// marked appends the indices of the path's instructions that are marked.
func (r *route) marked(marks []bool, to []int) []int {
	for k, n := range r.path {
		if marks[n] {
			to = append(to, k)
		}
	}
	return to
}

// nextRepeated is the first index from one on of a repeated instruction, or the end of the path.
func (r *route) nextRepeated(from int) int {
	i, _ := slices.BinarySearch(r.repeated, from)
	if i == len(r.repeated) {
		return len(r.path)
	}
	return r.repeated[i]
}

// nextPlace is the first place after an instruction, or the end of the path.
func (r *route) nextPlace(after int) int {
	i, _ := slices.BinarySearch(r.places, after+1)
	if i == len(r.places) {
		return len(r.path)
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
	code   code
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
const mostInstructions = 60_000_000

// newRecorded takes the paths of a profile; not ok: they are longer than mostInstructions.
func newRecorded(p *paths.Profile) (r *recorded, ok bool) {
	r = &recorded{code: code{blocks: make([][]int32, len(p.Blocks))}}
	known := map[uint64]int32{}
	total := 0
	for i := range p.Threads {
		t := &p.Threads[i]
		x := route{thread: t.ID, code: &r.code}
		for _, s := range t.Turns {
			from := len(x.path)
			for _, b := range s.Blocks {
				x.path = append(x.path, r.code.instructionsOf(p, b, known)...)
			}
			if total += len(x.path) - from; total > mostInstructions {
				return nil, false
			}
			r.addTurn(s.Core, turn{route: i, end: len(x.path), started: s.CoreInstructions, length: len(x.path) - from})
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
	marks := r.code.are(func(pc arch.Addr) bool { return at[pc] })
	for i := range r.routes {
		x := &r.routes[i]
		x.places = x.marked(marks, x.places[:0])
	}
}

// setRepeated finds the repeated instructions.
func (r *recorded) setRepeated(repeats func(arch.Addr) bool) {
	marks := r.code.are(repeats)
	for i := range r.routes {
		x := &r.routes[i]
		x.repeated = x.marked(marks, nil)
	}
}
