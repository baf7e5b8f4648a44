package storebuffer

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Release commits every store of the cores other than self that may be committed,
// and appends the commits to to. Hold returns how many of a thread's stores to
// an address stay, the newest. The running core does not see in which order others
// see its own stores.
func (c *Cores) Release(self arch.CoreID, hold func(arch.ThreadID, arch.Addr) int, m Memory, to []event.Commit) []event.Commit {
	for k := range c.cores {
		if arch.CoreID(k) == self {
			continue
		}
		for i := 0; i < len(c.cores[k].stores); {
			b := &c.cores[k]
			if !c.mayCommit(b.stores, i) || b.countSameAddress(i) <= hold(b.thread, b.stores[i].Addr) {
				i++
				continue
			}
			c.commitEntry(k, i, m)
			to = append(to, event.Commit{Core: arch.CoreID(k), Entry: uint32(i)})
		}
	}
	return to
}

// Withheld calls f for each store of the cores other than self that waits, core by
// core and the oldest first, with whether it may be committed, and how many wait to
// the same address from that on.
func (c *Cores) Withheld(self arch.CoreID, f func(t arch.ThreadID, at arch.Addr, may bool, n int)) {
	for k := range c.cores {
		b := &c.cores[k]
		for i := range b.stores {
			if arch.CoreID(k) != self && b.stores[i].Size > 0 {
				f(b.thread, b.stores[i].Addr, c.mayCommit(b.stores, i), b.countSameAddress(i))
			}
		}
	}
}

// countSameAddress counts the stores to the address of store i, from that on.
func (b *core) countSameAddress(i int) int {
	n := 0
	for k := i; k < len(b.stores); k++ {
		if b.stores[k].Size > 0 && b.stores[k].Addr == b.stores[i].Addr {
			n++
		}
	}
	return n
}
