package storebuffer

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Apart is an engine that keeps the pages apart that cores have stored to:
// emu.PrivatePages.
type Apart interface {
	// Waiting is the number of pages in a core's buffer, and the core's clock
	// when the first came in.
	Waiting(arch.CoreID) (pages int, made arch.Cycles)
	// Drain commits all that waits in a core's buffer.
	Drain(arch.CoreID)
}

var _ Apart = (emu.PrivatePages)(nil)

// PageCores decides when the buffers of cores are committed that the engine
// keeps by pages.
type PageCores struct {
	options Options
	threads []arch.ThreadID // whose stores are in each core's buffer, or were
	random  rand.SplitMix
}

// NewPages makes the decisions for a machine's cores. The options must be valid.
func NewPages(cores int, seed uint64, o Options) *PageCores {
	p := &PageCores{options: o.WithDefaults(), threads: make([]arch.ThreadID, cores), random: newCommitRandom(seed)}
	for k := range p.threads {
		p.threads[k] = arch.NoThread
	}
	return p
}

// Turn reports that t is about to run on k: it drains the buffers that the change of
// threads or cores drains.
func (p *PageCores) Turn(k arch.CoreID, t arch.ThreadID, e Apart) {
	for i, have := range p.threads {
		if core := arch.CoreID(i); (have == t) != (core == k) {
			e.Drain(core)
			p.threads[i] = arch.NoThread
		}
	}
	p.threads[k] = t
}

// Ended reports that a turn on k is over, and whether it executed a draining instruction.
func (p *PageCores) Ended(k arch.CoreID, drains bool, e Apart) {
	if pages, _ := e.Waiting(k); drains || pages > p.options.Capacity {
		e.Drain(k)
	}
}

// DrainAll commits all that waits.
func (p *PageCores) DrainAll(e Apart) {
	for k := range p.threads {
		e.Drain(arch.CoreID(k))
	}
}

// Decide takes the decisions that are due before a turn, drains the buffers for
// which that was decided, and appends them to to. Now is the clock of the core
// that is about to run.
func (p *PageCores) Decide(now arch.Cycles, e Apart, to []event.Commit) []event.Commit {
	for i := range p.threads {
		k := arch.CoreID(i)
		if pages, made := e.Waiting(k); pages > 0 && p.decidePages(made, now) {
			e.Drain(k)
			to = append(to, event.Commit{Core: k})
		}
	}
	return to
}

func (p *PageCores) decidePages(made, now arch.Cycles) bool {
	switch p.options.Commit {
	case "eager":
		return true
	case "random":
		return p.random.Chance(rand.NewShare(p.options.Rate))
	}
	return now >= made+arch.Cycles(p.options.Latency)
}

// Follow drains the buffers that a recorded run drained. It returns false at the
// first that has nothing in it or that is not there.
func (p *PageCores) Follow(commits []event.Commit, e Apart) bool {
	for _, x := range commits {
		if x.Core < 0 || int(x.Core) >= len(p.threads) || x.Entry != 0 {
			return false
		}
		if pages, _ := e.Waiting(x.Core); pages == 0 {
			return false
		}
		e.Drain(x.Core)
	}
	return true
}
