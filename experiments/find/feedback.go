package find

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/sched/points"
)

// feedback is what the schedules of RFF have observed, and the corpus of abstract schedules, sets of constraints,
// that have led to new observations. The next ones are mutations of these (Wolff and others, ASPLOS
// 2024, section 4).
type feedback struct {
	pairs    map[points.ReadsFrom]bool
	runs     map[[sha256.Size]byte]bool // sets of pairs of a run
	written  map[arch.Addr]map[arch.Addr]bool
	read     map[arch.Addr]map[arch.Addr]bool
	corpus   [][]points.Constraint
	possible []points.Constraint // that can be demanded, in a fixed order; nil: they are to be listed
}

// Bounds of the corpus and of an abstract schedule.
const (
	mostCorpus      = 512
	mostConstraints = 6
)

func newFeedback() feedback {
	return feedback{
		pairs: map[points.ReadsFrom]bool{}, runs: map[[sha256.Size]byte]bool{},
		written: map[arch.Addr]map[arch.Addr]bool{}, read: map[arch.Addr]map[arch.Addr]bool{},
	}
}

// note takes the observation of a schedule, and reports whether it has a new pair of write and read.
func (f *feedback) note(constraints []points.Constraint, o *points.Observation) (isNew bool) {
	h := sha256.New()
	for _, x := range slices.SortedFunc(maps.Keys(o.Pairs), comparePairs) {
		isNew = isNew || !f.pairs[x]
		f.pairs[x] = true
		_ = binary.Write(h, binary.LittleEndian, [2]uint64{uint64(x.Write), uint64(x.Read)})
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	if !f.runs[sum] && len(f.corpus) < mostCorpus {
		f.corpus = append(f.corpus, constraints)
	}
	f.runs[sum] = true
	if union(f.written, o.Written) || union(f.read, o.Read) {
		f.possible = nil
	}
	return isNew
}

func comparePairs(a, b points.ReadsFrom) int {
	return cmp.Or(cmp.Compare(a.Read, b.Read), cmp.Compare(a.Write, b.Write))
}

// union adds sets, and reports whether one has become greater.
func union(to, more map[arch.Addr]map[arch.Addr]bool) (grew bool) {
	for at, set := range more {
		if to[at] == nil {
			to[at] = map[arch.Addr]bool{}
		}
		before := len(to[at])
		maps.Copy(to[at], set)
		grew = grew || len(to[at]) > before
	}
	return grew
}

// plan makes the constraints of a schedule. Own restricts new ones to reads by the program's own file.
func (f *feedback) plan(draw rand.SplitMix, own bool, isOwn func(arch.Addr) bool) []points.Constraint {
	if len(f.corpus) == 0 {
		return nil
	}
	among := f.list()
	if own {
		if list := slices.DeleteFunc(slices.Clone(among), func(x points.Constraint) bool { return !isOwn(x.Read) }); len(list) > 0 {
			among = list
		}
	}
	list := slices.Clone(f.corpus[draw.Below(uint64(len(f.corpus)))])
	for range 1 + draw.Below(3) {
		list = mutate(&draw, list, among)
	}
	return list
}

// mutate adds, changes, negates or removes a constraint.
func mutate(draw *rand.SplitMix, list, among []points.Constraint) []points.Constraint {
	kind := draw.Below(8)
	switch {
	case len(among) == 0:
		return list
	case len(list) == 0 || kind < 4 && len(list) < mostConstraints:
		x := among[draw.Below(uint64(len(among)))]
		x.Forbidden = draw.Below(8) == 0
		same := func(y points.Constraint) bool { return y.Read == x.Read && !y.Forbidden && !x.Forbidden }
		return append(slices.DeleteFunc(list, same), x)
	}
	i := int(draw.Below(uint64(len(list))))
	if kind == 4 {
		list[i].Forbidden = !list[i].Forbidden
		return list
	}
	return slices.Delete(list, i, i+1)
}

// list lists the constraints that can be demanded: each read with each write to its address, and with the value
// from the start. Reads that have one write alone are left out.
func (f *feedback) list() []points.Constraint {
	if f.possible != nil {
		return f.possible
	}
	writes := map[arch.Addr]map[arch.Addr]bool{}
	for at, reads := range f.read {
		for pc := range reads {
			if writes[pc] == nil {
				writes[pc] = map[arch.Addr]bool{}
			}
			maps.Copy(writes[pc], f.written[at])
		}
	}
	f.possible = []points.Constraint{}
	for _, pc := range slices.Sorted(maps.Keys(writes)) {
		by := slices.Sorted(maps.Keys(writes[pc]))
		for _, w := range append([]arch.Addr{0}, by...) {
			if len(by) > 0 {
				f.possible = append(f.possible, points.Constraint{ReadsFrom: points.ReadsFrom{Write: w, Read: pc}, Writes: by})
			}
		}
	}
	return f.possible
}
