package generate

import (
	"slices"
	"strings"
)

// Direction of an event.
type Direction byte

// Directions.
const (
	R Direction = 'R'
	W Direction = 'W'
)

// Edge is a relation from one event to the next.
type Edge struct {
	Name     string
	From, To Direction
	External bool   // to another thread
	Other    bool   // to another location
	Fence    string // instruction between the two, if any
}

func programOrderEdges(name, fence string, other bool) []Edge {
	var all []Edge
	for _, d := range []string{"RR", "RW", "WR", "WW"} {
		all = append(all, Edge{Name: name + d, From: Direction(d[0]), To: Direction(d[1]), Other: other, Fence: fence})
	}
	return all
}

// Communication are the edges between threads.
func Communication() []Edge {
	return []Edge{
		{Name: "Rfe", From: W, To: R, External: true},
		{Name: "Fre", From: R, To: W, External: true},
		{Name: "Wse", From: W, To: W, External: true},
	}
}

// Program are the edges along a program without fences, to another location
// and to the same.
func Program() []Edge {
	return append(programOrderEdges("Pod", "", true), programOrderEdges("Pos", "", false)...)
}

// Fenced are edges with a fence: MFENCE, SFENCE or LFENCE.
func Fenced() []Edge {
	all := programOrderEdges("MFenced", "mfence", true)
	all = append(all, programOrderEdges("SFenced", "sfence", true)...)
	return append(all, programOrderEdges("LFenced", "lfence", true)...)
}

// Named picks edges by name out of all there are.
func Named(names ...string) []Edge {
	all := slices.Concat(Communication(), Program(), Fenced())
	var picked []Edge
	for _, name := range names {
		i := slices.IndexFunc(all, func(e Edge) bool { return e.Name == name })
		if i < 0 {
			panic("bug: no edge " + name)
		}
		picked = append(picked, all[i])
	}
	return picked
}

// Cycle is a cycle of edges; the last one leads to another thread.
type Cycle []Edge

// Name is the names of the edges.
func (c Cycle) Name() string {
	var names []string
	for _, e := range c {
		names = append(names, e.Name)
	}
	return strings.Join(names, "+")
}

// Threads is the number of threads.
func (c Cycle) Threads() int { return c.countEdges(func(e Edge) bool { return e.External }) }

func (c Cycle) countEdges(is func(Edge) bool) int {
	n := 0
	for _, e := range c {
		if is(e) {
			n++
		}
	}
	return n
}

// redundant reports whether two edges in a row are equivalent to one: two
// communications that compose to another one, two of the program's order that
// only make a longer program.
func redundant(a, b Edge) bool {
	switch a.Name + b.Name {
	case "RfeFre", "WseWse", "FreWse":
		return true
	}
	return false
}

// Cycles lists the cycles of up to length edges and threads threads.
func Cycles(edges []Edge, length, threads int) []Cycle {
	seen := map[string]bool{}
	var all []Cycle
	var extend func(c Cycle)
	extend = func(c Cycle) {
		if len(c) > 1 && c.makesTest(threads) {
			if name := c.canonical(); !seen[name] {
				seen[name] = true
				all = append(all, slices.Clone(c))
			}
		}
		if len(c) == length {
			return
		}
		for _, e := range edges {
			if len(c) > 0 && (c[len(c)-1].To != e.From || redundant(c[len(c)-1], e)) {
				continue
			}
			extend(append(c, e))
		}
	}
	extend(nil)
	return all
}

// makesTest reports whether c is a cycle that makes a test: at least two threads,
// and no location or two of them.
func (c Cycle) makesTest(threads int) bool {
	last := c[len(c)-1]
	if last.To != c[0].From || !last.External || redundant(last, c[0]) {
		return false
	}
	others := c.countEdges(func(e Edge) bool { return e.Other })
	n := c.Threads()
	writes := c.countEdges(func(e Edge) bool { return e.From == W })
	return n >= 2 && n <= threads && others != 1 && writes > 0
}

// canonical is the least of the names of the rotations of c.
func (c Cycle) canonical() string {
	least := ""
	for i := range c {
		turned := append(slices.Clone(c[i:]), c[:i]...)
		if name := turned.Name(); least == "" || name < least {
			least = name
		}
	}
	return least
}
