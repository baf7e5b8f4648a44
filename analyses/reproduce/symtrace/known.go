package symtrace

import "maps"

// Known is what rounds have found out about a run: what is shared, which threads write
// it, and what. Another Build of the same run that begins with it needs fewer rounds.
type Known struct {
	granules map[uint64]bool
	writers  map[uint64]int
	once     written
	arrays   map[uint64]arrayOf
	plain    map[uint64]bool
	blocks   map[blockKey]*block
	locks    []uint64
	history  map[location][]uint64
	outside  outside
	past     map[uint64]pastWrites
	unfed    bool // outside was not all that is done
}

// known is what another Build may begin with.
func (o *Options) known() *Known {
	if o.Known != nil {
		k := *o.Known
		k.granules, k.arrays, k.plain = maps.Clone(k.granules), maps.Clone(k.arrays), maps.Clone(k.plain)
		return &k
	}
	k := &Known{
		granules: map[uint64]bool{}, arrays: map[uint64]arrayOf{}, plain: map[uint64]bool{}, blocks: map[blockKey]*block{}, outside: newOutside(),
	}
	for _, r := range o.Shared {
		for g := r.Start / granule; g < (r.End+granule-1)/granule; g++ {
			k.granules[g] = true
		}
	}
	return k
}
