package storebuffer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// apart is an Apart that notes which buffers are drained.
type apart struct {
	pages   [3]int
	made    [3]arch.Cycles
	drained strings.Builder
}

func (a *apart) Waiting(k arch.CoreID) (int, arch.Cycles) { return a.pages[k], a.made[k] }

func (a *apart) Drain(k arch.CoreID) {
	if a.pages[k] > 0 {
		fmt.Fprintf(&a.drained, "%d ", k)
	}
	a.pages[k] = 0
}

// TestPageDrains: the events that drain buffers of stores drain those of pages.
func TestPageDrains(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(*PageCores, *apart)
		want string
	}{
		{"the same thread on its core", func(p *PageCores, a *apart) { p.Turn(0, 7, a) }, ""},
		{"another thread on the core", func(p *PageCores, a *apart) { p.Turn(0, 9, a) }, "0 "},
		{"the thread on another core", func(p *PageCores, a *apart) { p.Turn(2, 7, a) }, "0 "},
		{"the thread on another thread's core", func(p *PageCores, a *apart) { p.Turn(1, 7, a) }, "0 1 "},
		{"a new thread on a free core", func(p *PageCores, a *apart) { p.Turn(2, 9, a) }, ""},
		{"a slice that drains", func(p *PageCores, a *apart) { p.Ended(1, true, a) }, "1 "},
		{"a slice that does not", func(p *PageCores, a *apart) { p.Ended(0, false, a) }, ""},
		{"too many pages", func(p *PageCores, a *apart) { p.Ended(1, false, a) }, "1 "},
		{"all", func(p *PageCores, a *apart) { p.DrainAll(a) }, "0 1 "},
	} {
		p, a := NewPages(3, 1, Options{Model: "tso", Engine: Pages, Capacity: 4}), &apart{pages: [3]int{4, 5, 0}}
		p.Turn(0, 7, &apart{})
		p.Turn(1, 8, &apart{})
		if c.do(p, a); a.drained.String() != c.want {
			t.Errorf("%s: drained %q, want %q", c.what, a.drained.String(), c.want)
		}
	}
}

// TestPageDecisions: each policy decides about buffers with something in them, and
// a replay follows.
func TestPageDecisions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		now  arch.Cycles
		want string
	}{
		{Options{Commit: "eager"}, 0, "0 2 "},
		{Options{Commit: "random", Rate: 1}, 0, "0 2 "},
		{Options{Commit: "timed", Latency: 100}, 149, ""},
		{Options{Commit: "timed", Latency: 100}, 150, "0 "},
		{Options{Commit: "lazy", Latency: 100}, 200, "0 2 "},
	} {
		c.o.Model, c.o.Engine = "tso", Pages
		p := NewPages(3, 1, c.o)
		decided, followed := &apart{pages: [3]int{1, 0, 2}, made: [3]arch.Cycles{50, 0, 100}}, &apart{pages: [3]int{1, 0, 2}}
		commits := p.Decide(c.now, decided, nil)
		if got := decided.drained.String(); got != c.want {
			t.Errorf("%+v at %d: drained %q, want %q", c.o, c.now, got, c.want)
		}
		if !p.Follow(commits, followed) || followed.drained.String() != c.want {
			t.Errorf("%+v at %d: the replay drained %q", c.o, c.now, followed.drained.String())
		}
	}
	p := NewPages(2, 1, Options{Model: "tso", Engine: Pages})
	for _, x := range []event.Commit{{Core: 0}, {Core: 2}, {Core: -1}, {Core: 1, Entry: 1}} {
		if p.Follow([]event.Commit{x}, &apart{pages: [3]int{0, 1, 1}}) {
			t.Errorf("%v is followed", x)
		}
	}
}

// TestPageDecisionsAreSeeded: the same seed decides the same, another otherwise.
func TestPageDecisionsAreSeeded(t *testing.T) {
	sequence := func(seed uint64) string {
		p, a := NewPages(1, seed, Options{Model: "tso", Engine: Pages, Rate: 0.25}), &apart{}
		n := 0
		var made strings.Builder
		for range 4000 {
			a.pages[0] = 1
			drained := len(p.Decide(0, a, nil))
			n += drained
			fmt.Fprint(&made, drained)
		}
		if n < 900 || n > 1100 { // 1000, with a standard deviation of 27
			t.Errorf("seed %d: %d of 4000 drained at rate 0.25", seed, n)
		}
		return made.String()
	}
	first, again := sequence(1), sequence(1)
	if first != again || first == sequence(2) {
		t.Error("the seed does not decide")
	}
}
