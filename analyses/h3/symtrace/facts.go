package symtrace

import (
	"maps"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/sharing"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
)

// Facts are the findings of the passes over a run: which memory is shared, which threads write it,
// and the values that they write. Another Build of the same run that starts with them needs fewer
// passes.
type Facts struct {
	granules            map[uint64]bool
	writers             map[uint64]int
	writes              writtenBytes
	arrays              map[uint64]array
	notArrays           map[uint64]bool
	blocks              map[blockKey]*block
	locks               []uint64
	values              map[symbolPlace][]uint64
	interactions        interactions
	past                map[uint64]sharing.Writes
	interactionsUnknown bool // outside was not all that is done
}

// startingFacts returns a copy of the facts that a Build starts with.
func (o *Options) startingFacts() *Facts {
	if o.Facts != nil {
		k := *o.Facts
		k.granules, k.arrays, k.notArrays = maps.Clone(k.granules), maps.Clone(k.arrays), maps.Clone(k.notArrays)
		return &k
	}
	k := &Facts{
		granules: map[uint64]bool{}, arrays: map[uint64]array{}, notArrays: map[uint64]bool{}, blocks: map[blockKey]*block{}, interactions: newInteractions(),
	}
	for _, r := range o.Shared {
		for g := r.Start / symmem.Granule; g < (r.End+symmem.Granule-1)/symmem.Granule; g++ {
			k.granules[g] = true
		}
	}
	return k
}
