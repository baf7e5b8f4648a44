package buffers

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Apart is an engine that keeps the pages apart that cores have stored to:
// emu.Views.
type Apart interface {
	// Waiting is the number of pages in a core's buffer, and the core's clock
	// when the first came in.
	Waiting(event.CoreID) (pages int, made event.Cycles)
	// Drain commits all that waits in a core's buffer.
	Drain(event.CoreID)
}

var _ Apart = (*emu.Views)(nil)

// PageCores decides when the buffers of cores are committed that the engine
// keeps by pages.
type PageCores struct {
	options Options
	threads []event.ThreadID // whose stores are in each core's buffer, or were
	random  generator
}

// NewPages makes the decisions for a machine's cores. The options must be valid.
func NewPages(cores int, seed uint64, o Options) *PageCores {
	p := &PageCores{options: o.WithDefaults(), threads: make([]event.ThreadID, cores), random: newGenerator(seed)}
	for k := range p.threads {
		p.threads[k] = event.NoThread
	}
	return p
}

// Turn tells that t is about to run on k: it drains the buffers that the change of
// threads or cores drains.
func (p *PageCores) Turn(k event.CoreID, t event.ThreadID, e Apart) {
	for i, have := range p.threads {
		if core := event.CoreID(i); (have == t) != (core == k) {
			e.Drain(core)
			p.threads[i] = event.NoThread
		}
	}
	p.threads[k] = t
}

// Ended tells that a turn on k is over, and whether it did what drains.
func (p *PageCores) Ended(k event.CoreID, drains bool, e Apart) {
	if pages, _ := e.Waiting(k); drains || pages > p.options.Capacity {
		e.Drain(k)
	}
}

// DrainAll commits all that waits.
func (p *PageCores) DrainAll(e Apart) {
	for k := range p.threads {
		e.Drain(event.CoreID(k))
	}
}

// Decide takes the decisions that are due before a turn, drains the buffers for
// which that was decided, and appends them to to. Now is the clock of the core
// that is about to run.
func (p *PageCores) Decide(now event.Cycles, e Apart, to []event.Commit) []event.Commit {
	for i := range p.threads {
		k := event.CoreID(i)
		if pages, made := e.Waiting(k); pages > 0 && p.due(made, now) {
			e.Drain(k)
			to = append(to, event.Commit{Core: k})
		}
	}
	return to
}

func (p *PageCores) due(made, now event.Cycles) bool {
	switch p.options.Commit {
	case "eager":
		return true
	case "random":
		return p.random.chance(p.options.Rate)
	}
	return now >= made+event.Cycles(p.options.Latency)
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
