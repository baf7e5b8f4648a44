package slice

import (
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// raceAnalysis finds the races that other inputs may cause, and the decisions that exclude
// them: PEREGRINE's section 4.1. A region is the execution of a thread between two events,
// summarized as the set of executed blocks with their successors; regions with equal sets
// share a summary. Pairs of summaries are compared once.
type raceAnalysis struct {
	slice     *Slice
	sides     *sideCache
	items     []branchItem
	base      []int // first item of each context
	summaries []*regionSummary
	byKey     map[string]int
	threads   [][]threadRegion // by thread
	orders    map[[2]int][]orderedPair
	pairs     map[[2]int]*racingItems
}

// branchItem is a block of a context and the successor that is taken, -1 for none or any.
type branchItem struct {
	context *specialize.Context
	block   *cfg.Block
	taken   int
}

// ways is the number of items of a block: one for any successor, and one for each of the
// first ones. callItem stands for the block's call of a library.
const (
	ways     = 5
	callItem = ways - 2
)

// regionSummary is the accesses of regions.
type regionSummary struct {
	items []int
	// done are the accesses of the items, undone those on the other sides of their
	// branches.
	done, undone accessList
}

type accessList struct {
	list []itemAccess
	sets map[alias.Set]uint8
}

// itemAccess is an access of an item.
type itemAccess struct {
	item   int
	set    alias.Set
	store  bool
	atomic bool
}

const (
	setRead = 1 << iota
	setWritten
	setPlain
)

// orderedPair is a constraint between two threads: the first one's instructions up to from
// come before the second one's from to on.
type orderedPair struct{ from, to uint64 }

// racingItems are the items of two summaries that may race.
type racingItems struct{ first, second []int }

// itemNumber is the number of an item.
func (r *raceAnalysis) itemNumber(c *specialize.Context, b *cfg.Block, taken int) int {
	return r.base[c.Number] + b.Index*ways + min(taken, ways-2) + 1
}

// findRaces finds the items that must be kept.
func findRaces(s *Slice, d *sideCache) *raceAnalysis {
	r := &raceAnalysis{
		slice: s, sides: d, byKey: map[string]int{}, orders: map[[2]int][]orderedPair{},
		pairs: map[[2]int]*racingItems{},
	}
	for _, c := range s.Calls.Contexts {
		r.base = append(r.base, len(r.items))
		for _, b := range c.Function.Blocks {
			for i := range ways {
				r.items = append(r.items, branchItem{c, b, i - 1})
			}
		}
	}
	for _, t := range s.Calls.Threads {
		r.threads = append(r.threads, r.cutRegions(t))
		s.Stats.Regions += uint64(len(r.threads[len(r.threads)-1]))
	}
	r.collectOrders()
	for i := range r.threads {
		for k := range i {
			r.compareThreads(k, i)
		}
	}
	return r
}

// summarize returns the index of the summary of items.
func (r *raceAnalysis) summarize(items []int) int {
	key := make([]byte, 0, 4*len(items))
	for _, n := range items {
		key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	if n, ok := r.byKey[string(key)]; ok {
		return n
	}
	s := &regionSummary{items: slices.Clone(items)}
	s.done.sets, s.undone.sets = map[alias.Set]uint8{}, map[alias.Set]uint8{}
	for _, n := range items {
		r.addItemEffects(s, n)
	}
	r.byKey[string(key)] = len(r.summaries)
	r.summaries = append(r.summaries, s)
	return len(r.summaries) - 1
}

// addItemEffects adds the accesses of an item.
func (r *raceAnalysis) addItemEffects(s *regionSummary, n int) {
	it := &r.items[n]
	r.sides.meter.Add(1)
	for _, a := range r.slice.Alias.Accesses(it.context, it.block) {
		if _, _, own := r.slice.Alias.OwnFrame(a.Set, it.context); own && r.slice.Alias.IsPrivate(a.Set) {
			continue
		}
		s.done.addAccess(itemAccess{n, a.Set, a.Store, a.Atomic})
	}
	if l := r.slice.Alias.LibraryEffects(it.context, it.block); l != nil && !l.Model.MayBeEvent(r.sides.orderedCalls) {
		call := r.itemNumber(it.context, it.block, callItem)
		s.done.addAccess(itemAccess{call, l.Reads, false, false})
		s.done.addAccess(itemAccess{call, l.Writes, true, false})
	}
	if it.taken < 0 || len(it.block.Next) < 2 {
		return
	}
	d := r.sides.effectsOf(it.context, it.block, it.taken)
	if d.reachesEvent || d.mayNotReturn {
		return // the branch is kept in any case
	}
	for _, list := range []struct {
		sets, plain []alias.Set
		store       bool
	}{{d.reads, d.plainReads, false}, {d.writes, d.plainWrites, true}} {
		for _, set := range list.sets {
			_, plain := slices.BinarySearch(list.plain, set)
			s.undone.addAccess(itemAccess{n, set, list.store, !plain})
		}
	}
}

func (a *accessList) addAccess(x itemAccess) {
	if x.set == alias.Nothing {
		return
	}
	flags := uint8(setRead)
	if x.store {
		flags = setWritten
	}
	if !x.atomic {
		flags |= setPlain
	}
	a.sets[x.set] |= flags
	a.list = append(a.list, x)
}

// collectOrders finds, for each pair of threads, the constraints from one to the other.
func (r *raceAnalysis) collectOrders() {
	places := map[arch.ThreadID]int{}
	for i, t := range r.slice.Calls.Threads {
		places[t.ID] = i
	}
	r.slice.Calls.Events.EachConstraint(func(first arch.ThreadID, from uint64, second arch.ThreadID, to uint64) {
		key := [2]int{places[first], places[second]}
		r.orders[key] = append(r.orders[key], orderedPair{from, to})
	})
	for _, list := range r.orders {
		sort.Slice(list, func(i, j int) bool { return list[i].from < list[j].from })
		for i := len(list) - 2; i >= 0; i-- {
			list[i].to = min(list[i].to, list[i+1].to)
		}
	}
}

// isOrdered reports whether constraints order a region of one thread before a region of
// another.
func (r *raceAnalysis) isOrdered(first int, a *threadRegion, second int, b *threadRegion) bool {
	list := r.orders[[2]int{first, second}]
	i := sort.Search(len(list), func(i int) bool { return list[i].from+1 >= a.end })
	return i < len(list) && list[i].to <= b.low
}

// compareThreads compares the concurrent regions of two threads.
func (r *raceAnalysis) compareThreads(first, second int) {
	a, b := r.threads[first], r.threads[second]
	from := 0
	for i := range a {
		for from < len(b) && b[from].before <= a[i].after {
			from++
		}
		for k := from; k < len(b) && b[k].after < a[i].before; k++ {
			r.sides.meter.Add(1)
			p := r.commonRaces(a[i].summary, b[k].summary)
			if p == nil || r.isOrdered(first, &a[i], second, &b[k]) || r.isOrdered(second, &b[k], first, &a[i]) {
				continue
			}
			r.slice.Stats.Races++
			r.sides.meter.Add(len(p.first) + len(p.second))
			a[i].keepItems(p.first)
			b[k].keepItems(p.second)
		}
	}
}

// commonRaces returns the items of two summaries that may race; nil: none. The number of an
// item is inverted for accesses that are done.
func (r *raceAnalysis) commonRaces(a, b int) *racingItems {
	key := [2]int{a, b}
	if p, ok := r.pairs[key]; ok {
		return p
	}
	x, y := r.summaries[a], r.summaries[b]
	p := &racingItems{}
	r.collectRaces(p, &x.done, &y.done, func(n int) int { return ^n }, func(n int) int { return ^n })
	r.collectRaces(p, &x.undone, &y.done, keepItem, omitItem)
	r.collectRaces(p, &x.done, &y.undone, omitItem, keepItem)
	r.collectRaces(p, &x.undone, &y.undone, keepItem, omitItem)
	if len(p.first)+len(p.second) == 0 {
		p = nil
	}
	r.pairs[key] = p
	return p
}

const noItem = -1 << 62

func keepItem(n int) int { return n }

func omitItem(int) int { return noItem }

// collectRaces adds the items of accesses that may race, mapped by the two functions.
func (r *raceAnalysis) collectRaces(p *racingItems, x, y *accessList, first, second func(int) int) {
	firsts, seconds := map[alias.Set]bool{}, map[alias.Set]bool{}
	for s, f := range x.sets { // the result is a set, so the order does not matter
		r.sides.meter.Add(len(y.sets))
		for u, g := range y.sets {
			if (f|g)&setWritten == 0 || (f|g)&setPlain == 0 || !r.slice.Alias.MayOverlap(s, u) {
				continue
			}
			firsts[s], seconds[u] = true, true
		}
	}
	p.first = append(p.first, x.itemsOf(firsts, first)...)
	p.second = append(p.second, y.itemsOf(seconds, second)...)
}

// itemsOf are the items of accesses to some sets, mapped by a function.
func (a *accessList) itemsOf(sets map[alias.Set]bool, as func(int) int) []int {
	var list []int
	for _, x := range a.list {
		if !sets[x.set] {
			continue
		}
		if n := as(x.item); n != noItem {
			list = append(list, n)
		}
	}
	return list
}
