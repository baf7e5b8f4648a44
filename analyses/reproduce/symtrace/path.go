package symtrace

import (
	"github.com/heddle-dmt/heddle/analyses/reproduce/paths"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// spot is a block that a thread executed: where and when.
type spot struct {
	block int32
	core  event.CoreID
	place uint64 // instructions of the core before it
}

// position is an instruction of a path: number k of a spot.
type position struct{ i, k int }

// path is what a thread executed, as spots.
type path struct {
	profile *paths.Profile
	spots   []spot
	// loop is how many spots at the end are a round of a loop that is never left.
	loop int
}

func newPath(p *paths.Profile, t *paths.Thread) *path {
	n := 0
	for _, s := range t.Slices {
		n += len(s.Path)
	}
	out := &path{profile: p, spots: make([]spot, 0, n)}
	for _, s := range t.Slices {
		at := s.Place
		for _, b := range s.Path {
			out.spots = append(out.spots, spot{b, s.Core, at})
			at += uint64(len(p.Blocks[b].Instructions))
		}
	}
	return out
}

func (p *path) block(i int) *paths.Block { return &p.profile.Blocks[p.spots[i].block] }

// pc is the instruction at a position; false: behind the end.
func (p *path) pc(at position) (uint64, bool) {
	if at.i >= len(p.spots) {
		return 0, false
	}
	return p.block(at.i).Instructions[at.k], true
}

// after is the position n instructions later.
func (p *path) after(at position, n int) position {
	at.k += n
	for at.i < len(p.spots) && at.k >= len(p.block(at.i).Instructions) {
		at.k -= len(p.block(at.i).Instructions)
		at.i++
	}
	return at
}

// find is the first position from one on where a block begins at an address.
func (p *path) find(from position, addr uint64) (position, bool) {
	if from.k > 0 {
		from = position{from.i + 1, 0}
	}
	for i := from.i; i < len(p.spots); i++ {
		if uint64(p.block(i).Addr) == addr {
			return position{i, 0}, true
		}
	}
	return position{}, false
}

// left is how many instructions of the spot are left, and their bytes.
func (p *path) left(at position) (instructions, bytes int) {
	b := p.block(at.i)
	return len(b.Instructions) - at.k, int(uint64(b.Addr) + uint64(b.Bytes) - b.Instructions[at.k])
}

// cutLoop leaves one round of a loop in which a path ends. The run may have ended within
// a block, which then is another one.
func (p *path) cutLoop() {
	for end := len(p.spots); end >= len(p.spots)-1; end-- {
		if rounds, period := p.repeated(end); period > 0 {
			p.spots, p.loop = p.spots[:end-rounds], period
			return
		}
	}
}

// repeated is how many spots before an end are those that were executed a period before;
// without a period they are too few.
func (p *path) repeated(end int) (same, period int) {
	const longest, least = 64, 500
	for period = 1; period <= longest; period++ {
		same = 0
		for i := end - 1; i >= period && p.spots[i].block == p.spots[i-period].block; i-- {
			same++
		}
		if same >= least {
			return same, period
		}
	}
	return 0, 0
}
