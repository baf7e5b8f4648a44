package find

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// commits decides under weak memory models which stores stay in the buffers of threads that do not
// run. Before each quantum each store that may leave its buffer stays with a probability that the
// seed draws for the schedule: always, in seven of eight cases, or in one of two.
type commits struct {
	draw rand.Stream
	stay rand.Share
}

func (c *commits) begin(seed uint64) {
	c.draw = rand.NewStream(seed, 'S')
	c.stay = rand.NewShare([]float64{1, 0.875, 0.5}[c.draw.Below(3)])
}

// endDelays has stores leave their buffers at once from now on: a thread may wait for one.
func (c *commits) endDelays() { c.stay = 0 }

// manyStores is a number of stores that no buffer holds.
const manyStores = 1 << 30

// keep is for machine.WithStoresKept.
func (c *commits) keep(arch.ThreadID, arch.Addr) int {
	if c.draw.Chance(c.stay) {
		return manyStores
	}
	return 0
}

// isDue reports whether the quantum of a thread that continues ends at a point, so that stores of
// others can leave their buffers there.
func (c *commits) isDue(m *machine.Machine) bool {
	return !m.StoresAreVisible() && c.draw.Chance(rand.NewShare(0.25))
}
