package storebuffer

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Memory is the memory that all cores see. Commit writes a store in the address
// space of a thread; it does nothing when the thread or the page is gone.
type Memory interface {
	Commit(t arch.ThreadID, at arch.Addr, data []byte)
}

// Cores are the store buffers of all cores.
type Cores struct {
	model              memmodel.Model
	options            Options
	cores              []core
	random             rand.SplitMix
	committed, drained uint64
}

// core is the buffer of a core.
type core struct {
	thread arch.ThreadID // whose stores they are
	stores []emu.Store   // oldest first
}

// New makes the empty buffers of a machine's cores. The options must be valid.
func New(cores int, seed uint64, o Options) *Cores {
	o = o.WithDefaults()
	c := &Cores{model: o.MemoryModel(), options: o, cores: make([]core, cores), random: newCommitRandom(seed)}
	for i := range c.cores {
		c.cores[i].thread = arch.NoThread
	}
	return c
}

// Stores are the waiting stores of a core's buffer, oldest first, until the next call.
func (c *Cores) Stores(k arch.CoreID) []emu.Store { return c.cores[k].stores }

// Thread is whose stores wait in a core's buffer.
func (c *Cores) Thread(k arch.CoreID) arch.ThreadID { return c.cores[k].thread }

// Committed is how many stores were committed by decisions.
func (c *Cores) Committed() uint64 { return c.committed }

// Drained is how many stores were committed because something drained their
// buffer.
func (c *Cores) Drained() uint64 { return c.drained }

// Keep puts the stores that wait in the engine after a turn of t on k into k's buffer, in
// place of its contents. Add is handed the buffer's room.
func (c *Cores) Keep(k arch.CoreID, t arch.ThreadID, add func(room []emu.Store) []emu.Store) {
	b := &c.cores[k]
	b.thread = t
	b.stores = dropFences(add(b.stores[:0]))
}

// dropFences removes the fences in front of which nothing waits.
func dropFences(stores []emu.Store) []emu.Store {
	n := 0
	for n < len(stores) && stores[n].Size == 0 {
		n++
	}
	return slices.Delete(stores, 0, n)
}

// Turn tells that t is about to run on k: it drains the buffers that the change
// of threads or cores drains.
func (c *Cores) Turn(k arch.CoreID, t arch.ThreadID, m Memory) {
	for i := range c.cores {
		if b := &c.cores[i]; (b.thread == t) != (arch.CoreID(i) == k) && (b.thread == t || arch.CoreID(i) == k) {
			c.Drain(arch.CoreID(i), m)
		}
	}
}

// Drain commits all that waits in a core's buffer.
func (c *Cores) Drain(k arch.CoreID, m Memory) {
	b := &c.cores[k]
	for i := range b.stores {
		c.writeEntry(b, i, m)
		c.drained++
	}
	b.stores = b.stores[:0]
	b.thread = arch.NoThread
}

// DrainAll commits all that waits.
func (c *Cores) DrainAll(m Memory) {
	for i := range c.cores {
		c.Drain(arch.CoreID(i), m)
	}
}

func (c *Cores) writeEntry(b *core, i int, m Memory) {
	if s := &b.stores[i]; s.Size > 0 {
		m.Commit(b.thread, s.Addr, s.Data[:s.Size])
	}
}

// commitEntry commits entry i of a buffer.
func (c *Cores) commitEntry(k, i int, m Memory) {
	b := &c.cores[k]
	c.writeEntry(b, i, m)
	c.committed++
	b.stores = dropFences(slices.Delete(b.stores, i, i+1))
}

// WaitsFor lists the stores of a core, oldest first, that have to be committed before store i.
func (c *Cores) WaitsFor(k arch.CoreID, i int) (list []int) {
	stores := c.cores[k].stores
	fenced := false
	for j := i - 1; j >= 0; j-- {
		e := &stores[j]
		if e.Size == 0 {
			fenced = true
			continue
		}
		if fenced || c.keepsOrder(e, &stores[i]) || slices.ContainsFunc(list, func(n int) bool { return c.keepsOrder(e, &stores[n]) }) {
			list = append(list, j)
		}
	}
	slices.Reverse(list)
	return list
}

// Waits reports whether a store waits for others: WaitsFor returns some.
func (c *Cores) Waits(k arch.CoreID, i int) bool {
	stores := c.cores[k].stores
	fenced := false
	for j := i - 1; j >= 0; j-- {
		if e := &stores[j]; e.Size == 0 {
			fenced = true
		} else if fenced || c.keepsOrder(e, &stores[i]) {
			return true
		}
	}
	return false
}

// keepsOrder reports whether an older store, which is no fence, is committed before a newer one.
func (c *Cores) keepsOrder(o, e *emu.Store) bool {
	overlap := o.Addr < e.Addr+arch.Addr(e.Size) && e.Addr < o.Addr+arch.Addr(o.Size)
	return overlap || c.model != memmodel.PSO && e.Weak == 0 && o.Weak == 0
}

// mayCommit is memmodel.Model.MayCommit for the stores of a core.
func (c *Cores) mayCommit(stores []emu.Store, k int) bool {
	e := &stores[k]
	if e.Size == 0 {
		return false
	}
	for i := range stores[:k] {
		if o := &stores[i]; o.Size == 0 || c.keepsOrder(o, e) {
			return false
		}
	}
	return true
}

// Decide takes the decisions that are due before a turn, commits the chosen
// stores, and appends them to to. Now is the clock of the core that is about to
// run.
func (c *Cores) Decide(now arch.Cycles, m Memory, to []event.Commit) []event.Commit {
	for k := range c.cores {
		for i := 0; i < len(c.cores[k].stores); {
			stores := c.cores[k].stores
			if c.isTooYoung(&stores[i], now) {
				break
			}
			if !c.mayCommit(stores, i) || !c.decideStore(&stores[i], now) {
				i++
				continue
			}
			c.commitEntry(k, i, m)
			to = append(to, event.Commit{Core: arch.CoreID(k), Entry: uint32(i)})
		}
	}
	return to
}

// isTooYoung reports that neither a store nor any that its core made later is due.
func (c *Cores) isTooYoung(s *emu.Store, now arch.Cycles) bool {
	switch {
	case s.Size == 0 || c.options.Commit == "eager" || c.options.Commit == "random":
		return false
	case c.options.Commit == "timed" && c.model == memmodel.PSO:
		return now <= s.Made
	}
	return now < s.Made+arch.Cycles(c.options.Latency)
}

// decideStore decides about one store.
func (c *Cores) decideStore(s *emu.Store, now arch.Cycles) bool {
	switch c.options.Commit {
	case "eager":
		return true
	case "random":
		return c.random.Chance(rand.NewShare(c.options.Rate))
	}
	latency := c.options.Latency
	if c.options.Commit == "timed" && c.model == memmodel.PSO {
		// Equal latencies would keep all stores in order.
		latency = 1 + c.random.Below(2*latency)
	}
	return now >= s.Made+arch.Cycles(latency)
}

// Follow makes the commits of a recorded run. It returns false at the first
// that the model does not allow or that is not there.
func (c *Cores) Follow(commits []event.Commit, m Memory) bool {
	for _, x := range commits {
		if x.Core < 0 || int(x.Core) >= len(c.cores) {
			return false
		}
		if stores := c.cores[x.Core].stores; int(x.Entry) >= len(stores) || !c.mayCommit(stores, int(x.Entry)) {
			return false
		}
		c.commitEntry(int(x.Core), int(x.Entry), m)
	}
	return true
}
