package paths

import "github.com/heddle-dmt/heddle/emu/arch"

// ExecutedBlock is a block that a thread executed: where and when.
type ExecutedBlock struct {
	Number           int32
	Core             arch.CoreID
	CoreInstructions uint64 // instructions of the core before it
}

// Position is an instruction of a track: its number in the block of a number.
type Position struct{ Block, Instruction int }

// Track is the path of a thread as one sequence of executed blocks.
type Track struct {
	Profile *Profile
	Blocks  []ExecutedBlock
	// Loop is how many blocks at the end are a round of a loop that is never left.
	Loop int
}

func NewTrack(p *Profile, t *Thread) *Track {
	n := 0
	for _, s := range t.Turns {
		n += len(s.Blocks)
	}
	out := &Track{Profile: p, Blocks: make([]ExecutedBlock, 0, n)}
	for _, s := range t.Turns {
		at := s.CoreInstructions
		for _, b := range s.Blocks {
			out.Blocks = append(out.Blocks, ExecutedBlock{b, s.Core, at})
			at += uint64(len(p.Blocks[b].Instructions))
		}
	}
	return out
}

func (p *Track) blockAt(i int) *Block { return &p.Profile.Blocks[p.Blocks[i].Number] }

// PCAt is the address of the instruction at a position; false: the position is after the end.
func (p *Track) PCAt(at Position) (uint64, bool) {
	if at.Block >= len(p.Blocks) {
		return 0, false
	}
	return p.blockAt(at.Block).Instructions[at.Instruction], true
}

// Advance is the position n instructions later.
func (p *Track) Advance(at Position, n int) Position {
	at.Instruction += n
	for at.Block < len(p.Blocks) && at.Instruction >= len(p.blockAt(at.Block).Instructions) {
		at.Instruction -= len(p.blockAt(at.Block).Instructions)
		at.Block++
	}
	return at
}

// FindBlock is the first position from one on where a block begins at an address.
func (p *Track) FindBlock(from Position, addr uint64) (Position, bool) {
	if from.Instruction > 0 {
		from = Position{from.Block + 1, 0}
	}
	for i := from.Block; i < len(p.Blocks); i++ {
		if uint64(p.blockAt(i).Addr) == addr {
			return Position{i, 0}, true
		}
	}
	return Position{}, false
}

// Remaining is how many instructions of the spot are left, and their bytes.
func (p *Track) Remaining(at Position) (instructions, bytes int) {
	b := p.blockAt(at.Block)
	return len(b.Instructions) - at.Instruction, int(uint64(b.Addr) + uint64(b.Bytes) - b.Instructions[at.Instruction])
}

// CutEndlessLoop leaves one round of a loop in which a path ends. The run may have ended within
// a block, which then is another one.
func (p *Track) CutEndlessLoop() {
	for end := len(p.Blocks); end >= len(p.Blocks)-1; end-- {
		if rounds, period := p.findRepetition(end); period > 0 {
			p.Blocks, p.Loop = p.Blocks[:end-rounds], period
			return
		}
	}
}

// findRepetition is how many blocks before an end equal the blocks a period earlier; without a
// period they are too few.
func (p *Track) findRepetition(end int) (same, period int) {
	const longest, least = 64, 500
	for period = 1; period <= longest; period++ {
		same = 0
		for i := end - 1; i >= period && p.Blocks[i].Number == p.Blocks[i-period].Number; i-- {
			same++
		}
		if same >= least {
			return same, period
		}
	}
	return 0, 0
}
