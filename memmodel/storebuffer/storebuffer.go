package storebuffer

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// None is the store buffer of SC: each store is in memory at once.
type None struct{}

var _ memmodel.StoreBuffer = None{}

// commitUntil commits a thread's oldest stores to an address until no more wait than w says.
func (b *ByStore) commitUntil(w Waiting) {
	for k := range b.cores {
		for i := 0; b.cores[k].thread == w.Thread && i < len(b.cores[k].stores); i++ {
			c := &b.cores[k]
			if x := c.stores[i]; x.Size == 0 || x.Addr != w.Addr {
				continue
			}
			if c.countSameAddress(i) <= w.Newest {
				break
			}
			b.CommitWithOlder(arch.CoreID(k), i)
			i = -1 // those that are left have other numbers
		}
	}
}

// Decide implements memmodel.StoreBuffer, and so do the other methods.
func (None) Decide(_ arch.CoreID, _ arch.Cycles, list []event.Commit) []event.Commit { return list }

// Follow allows no commits.
func (None) Follow(commits []event.Commit) (problem string) {
	if len(commits) > 0 {
		return "a store is committed in the recording, and under SC none waits"
	}
	return ""
}

// Switch does nothing: no store waits.
func (None) Switch(arch.CoreID, arch.ThreadID) {}

// Begin does nothing.
func (None) Begin(arch.CoreID, arch.ThreadID) {}

// End does nothing.
func (None) End(arch.CoreID, arch.ThreadID) {}

// Drain does nothing.
func (None) Drain(arch.CoreID) {}

// DrainAll does nothing.
func (None) DrainAll() {}

// IsEmpty is always true.
func (None) IsEmpty() bool { return true }

// Save does nothing.
func (None) Save() {}

// Forget does nothing.
func (None) Forget() {}

// Load does nothing.
func (None) Load(func(arch.ThreadID) *mem.Space) {}

// ByStore keeps single stores, in the order in which their core made them.
type ByStore struct {
	*Cores
	engine emu.Buffers
	memory Memory
	kept   *keptStores
	made   []event.Commit // by Commit, since the last Decide
}

var _ memmodel.StoreBuffer = (*ByStore)(nil)

// keptStores replaces the decisions of Options.Commit.
type keptStores struct {
	keep  func(arch.ThreadID, arch.Addr) int
	first func() []Waiting
}

// Waiting says how many of a thread's stores to an address wait, the newest.
type Waiting struct {
	Thread arch.ThreadID
	Addr   arch.Addr
	Newest int
}

// SharedInSnapshot marks that copies of the state share it.
func (*keptStores) SharedInSnapshot() {}

// NewByStore makes the empty buffers of a machine's cores. The options must be valid, and
// nothing may have run on the CPU. Commits go to memory.
func NewByStore(cpu emu.CPU, cores int, seed uint64, o Options, memory Memory) (*ByStore, error) {
	engine, err := cpu.BufferStores(o.WithDefaults().Capacity)
	if err != nil {
		return nil, err
	}
	return &ByStore{Cores: New(cores, seed, o), engine: engine, memory: memory}, nil
}

// KeepStores has Decide commit each store of the other cores as soon as the memory model
// allows it, but for the ones that keep asks for: how many of a thread's stores to an address
// stay, the newest ones. Before that, the stores are committed that first, unless nil, returns, in its
// order, with those that they wait for, and also those of the core that runs next: of each item the
// oldest, until no more than Newest are left.
func (b *ByStore) KeepStores(keep func(t arch.ThreadID, at arch.Addr) int, first func() []Waiting) {
	b.kept = &keptStores{keep, first}
}

// Commit commits a store that may be, between quanta: it is a decision before the next one.
func (b *ByStore) Commit(x event.Commit) {
	b.commitEntry(int(x.Core), int(x.Entry), b.memory)
	b.made = append(b.made, x)
}

// CommitWithOlder commits the stores that store i of a core waits for, and then that store.
func (b *ByStore) CommitWithOlder(k arch.CoreID, i int) {
	for later := len(b.Stores(k)) - i; ; {
		at := len(b.Stores(k)) - later
		list := b.WaitsFor(k, at)
		if len(list) == 0 {
			b.Commit(event.Commit{Core: k, Entry: uint32(at)})
			return
		}
		b.Commit(event.Commit{Core: k, Entry: uint32(list[0])})
	}
}

// Decide implements memmodel.StoreBuffer, and so do the other methods.
func (b *ByStore) Decide(core arch.CoreID, now arch.Cycles, list []event.Commit) []event.Commit {
	if b.kept != nil && b.kept.first != nil {
		for _, w := range b.kept.first() {
			b.commitUntil(w)
		}
	}
	list = append(list, b.made...)
	b.made = nil
	if b.kept != nil {
		return b.Cores.Release(core, b.kept.keep, b.memory, list)
	}
	return b.Cores.Decide(now, b.memory, list)
}

// Follow makes the commits of a recorded run.
func (b *ByStore) Follow(commits []event.Commit) (problem string) {
	if !b.Cores.Follow(commits, b.memory) {
		return "a store that is committed in the recording cannot be committed now"
	}
	return ""
}

// Switch drains the buffers that a change of threads or cores drains.
func (b *ByStore) Switch(core arch.CoreID, t arch.ThreadID) { b.Cores.Turn(core, t, b.memory) }

// Begin puts the core's stores over memory.
func (b *ByStore) Begin(core arch.CoreID, _ arch.ThreadID) { b.engine.Apply(b.Stores(core)) }

// End takes the core's stores out of memory.
func (b *ByStore) End(core arch.CoreID, t arch.ThreadID) { b.Keep(core, t, b.engine.Withdraw) }

// Drain commits the stores of a core.
func (b *ByStore) Drain(core arch.CoreID) { b.Cores.Drain(core, b.memory) }

// DrainAll commits the stores of all cores.
func (b *ByStore) DrainAll() { b.Cores.DrainAll(b.memory) }

// IsEmpty reports whether no store waits.
func (b *ByStore) IsEmpty() bool {
	for k := range b.cores {
		if len(b.cores[k].stores) > 0 {
			return false
		}
	}
	return true
}

// Save does nothing: all stores are part of the state between turns.
func (b *ByStore) Save() {}

// Forget does nothing.
func (b *ByStore) Forget() {}

// Load does nothing.
func (b *ByStore) Load(func(arch.ThreadID) *mem.Space) {}

// ByPage keeps copies of the pages that each core has stored to, in the engine, and commits
// the buffer of a core as a whole.
type ByPage struct {
	*PageCores
	engine emu.PrivatePages
	saved  emu.SavedPages // in copies of the state
}

var _ memmodel.StoreBuffer = (*ByPage)(nil)

// NewByPage makes the empty buffers of a machine's cores. The options must be valid, and
// nothing may have run on the CPU.
func NewByPage(cpu emu.CPU, cores int, seed uint64, o Options) (*ByPage, error) {
	engine, err := cpu.UsePrivatePages()
	if err != nil {
		return nil, err
	}
	return &ByPage{PageCores: NewPages(cores, seed, o), engine: engine}, nil
}

// Decide implements memmodel.StoreBuffer, and so do the other methods.
func (b *ByPage) Decide(_ arch.CoreID, now arch.Cycles, list []event.Commit) []event.Commit {
	return b.PageCores.Decide(now, b.engine, list)
}

// Follow drains the buffers that a recorded run drained.
func (b *ByPage) Follow(commits []event.Commit) (problem string) {
	if !b.PageCores.Follow(commits, b.engine) {
		return "a buffer that is drained in the recording has nothing in it now"
	}
	return ""
}

// Switch drains the buffers that a change of threads or cores drains.
func (b *ByPage) Switch(core arch.CoreID, t arch.ThreadID) { b.PageCores.Turn(core, t, b.engine) }

// Begin makes the thread see the core's copies of pages.
func (b *ByPage) Begin(core arch.CoreID, t arch.ThreadID) { b.engine.Begin(core, t) }

// End makes the thread see shared memory again, and drains a buffer that has to be.
func (b *ByPage) End(core arch.CoreID, _ arch.ThreadID) {
	b.PageCores.Ended(core, b.engine.End(), b.engine)
}

// Drain commits the pages of a core.
func (b *ByPage) Drain(core arch.CoreID) { b.engine.Drain(core) }

// DrainAll commits the pages of all cores.
func (b *ByPage) DrainAll() { b.PageCores.DrainAll(b.engine) }

// IsEmpty is always false: the pages of a buffer may hold no store.
func (b *ByPage) IsEmpty() bool { return false }

// Save makes the pages that wait part of the state.
func (b *ByPage) Save() { b.saved = b.engine.Save() }

// Forget removes them from the state again.
func (b *ByPage) Forget() {
	if b.saved != nil {
		b.saved.Release()
		b.saved = nil
	}
}

// Load gives the pages that waited back to the engine.
func (b *ByPage) Load(space func(arch.ThreadID) *mem.Space) {
	if b.saved != nil {
		b.saved.Load(space)
		b.Forget()
	}
}
