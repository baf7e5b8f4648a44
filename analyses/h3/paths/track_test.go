package paths

import "testing"

// A loop in which a path ends is cut to one round, wherever in the loop the run ended, also
// within a block; one that is left, or has few rounds, is not.
func TestCutLoop(t *testing.T) {
	made := func(begin []int32, round []int32, rounds int, end ...int32) *Track {
		p := &Track{}
		add := func(blocks []int32) {
			for _, b := range blocks {
				p.Blocks = append(p.Blocks, ExecutedBlock{Number: b})
			}
		}
		add(begin)
		for range rounds {
			add(round)
		}
		add(end)
		return p
	}
	begin, round := []int32{0, 1}, []int32{2, 3, 4}
	for _, c := range []struct {
		name    string
		p       *Track
		spots   int
		endless bool
	}{
		{"at the end of a round", made(begin, round, 300), 5, true},
		{"within a round", made(begin, round, 300, 2), 5, true},
		{"within a block", made(begin, round, 300, 7), 5, true},
		{"within a later block", made(begin, round, 300, 2, 7), 5, true},
		{"the loop is left", made(begin, round, 300, 5, 6), 904, false},
		{"few rounds", made(begin, round, 30), 92, false},
	} {
		c.p.CutEndlessLoop()
		if len(c.p.Blocks) != c.spots || (c.p.Loop == len(round)) != c.endless || !c.endless && c.p.Loop != 0 {
			t.Errorf("%s: %d spots are left, with a round of %d; expected %d", c.name, len(c.p.Blocks), c.p.Loop, c.spots)
		}
	}
}
