package find

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// commits decides under weak memory models which stores stay in the buffers of threads that do not
// run. In three of four schedules each store that may leave its buffer stays before each quantum with a
// probability that the seed draws for the schedule: always, in seven of eight cases, or in one of two. In the
// others stores stay but for a few random points, the communications, before which all leave their
// buffers: the communication depth of Gao, Chakraborty and Ozkan, Probabilistic concurrency testing for weak
// memory programs (ASPLOS 2023), applied to store buffers, where a thread that reads from another one needs
// that one's store to be committed.
type commits struct {
	draw           rand.Stream
	stay           rand.Share
	communications []uint64 // points that are still to come, in ascending order
	counts         bool     // points, for communications
	points         uint64
	all            bool // stores leave their buffers before the next quantum
}

// mostCommunications is the greatest communication depth.
const mostCommunications = 3

// begin begins a schedule of a number of points.
func (c *commits) begin(seed, points uint64) {
	*c = commits{draw: rand.NewStream(seed, 'S')}
	kind := c.draw.Below(4)
	if c.counts = kind == 3; c.counts {
		for range c.draw.Below(mostCommunications + 1) {
			c.communications = append(c.communications, 1+c.draw.Below(max(1, points)))
		}
		slices.Sort(c.communications)
		kind = 0
	}
	c.stay = rand.NewShare([]float64{1, 0.875, 0.5}[kind])
}

// endDelays has stores leave their buffers at once from now on: a thread may wait for one.
func (c *commits) endDelays() { c.stay = 0 }

// manyStores is a number of stores that no buffer holds.
const manyStores = 1 << 30

// keep is for machine.WithStoresKept.
func (c *commits) keep(arch.ThreadID, arch.Addr) int {
	if !c.all && c.draw.Chance(c.stay) {
		return manyStores
	}
	return 0
}

// isDue reports whether the quantum of a thread that continues ends at a point, so that stores of
// others can leave their buffers there.
func (c *commits) isDue(m *machine.Machine) bool {
	if c.counts {
		return c.isCommunication()
	}
	return !m.StoresAreVisible() && c.draw.Chance(rand.NewShare(0.25))
}

// isCommunication counts a point, and reports whether all stores are to leave their buffers there.
func (c *commits) isCommunication() bool {
	c.points++
	c.all = false
	for len(c.communications) > 0 && c.communications[0] <= c.points {
		c.communications = c.communications[1:]
		c.all = true
	}
	return c.all
}
