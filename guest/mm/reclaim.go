package mm

import "github.com/heddle-dmt/heddle/emu/arch"

// Reclaimer frees guest memory whose content can be read again: unchanged pages of host
// files.
type Reclaimer interface {
	// Reclaim frees as much as it can and returns the number of pages.
	Reclaim() int
}

// minReclaimed is the number of pages that must be free after memory was reclaimed.
// With less, pages would be freed as soon as they are read, and a program would
// continue with only the pages that one instruction needs.
const minReclaimed = 256

// reclaimMemory frees memory when guest memory is exhausted, and reports whether there is
// enough now.
func (as *AddressSpace) reclaimMemory() bool {
	if as.Reclaimer == nil || as.Reclaimer.Reclaim() == 0 {
		return false
	}
	free := int64(as.ram.Limit()) - int64(as.ram.Used()+as.ram.Tables())
	return free >= int64(min(minReclaimed, as.ram.Limit()/16))
}

// Starved reports whether the kernel could not access a page of the address space since
// the last call because guest memory is exhausted.
func (as *AddressSpace) Starved() bool {
	was := as.starved
	as.starved = false
	return was
}

// DropClean frees the pages of the object that were never requested for writing, and
// returns how many: they are read from the source again when they are needed. Mappings
// lose their entries for them; copies that private mappings made by writing stay.
// Nothing is freed while a mapping is locked.
func (o *Object) DropClean() int {
	for _, m := range o.mappers {
		if m.space.locked > 0 {
			return 0
		}
	}
	for _, m := range o.mappers {
		m.space.dropClean(o)
	}
	var clean []uint64
	o.pages.forEach(0, ^uint64(0), func(i uint64, p objectPage) {
		if !p.isDirty() {
			clean = append(clean, i)
		}
	})
	for _, i := range clean {
		o.pages.remove(o.ram, i)
	}
	return len(clean)
}

// dropClean removes all entries for clean pages of o.
func (as *AddressSpace) dropClean(o *Object) {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v.Object != o {
			continue
		}
		first := v.Offset / arch.PageSize
		o.pages.forEach(first, first+v.pageCount(), func(i uint64, page objectPage) {
			va, _ := v.addressOf(i)
			if e := as.space.Get(va); !page.isDirty() && e.Present() && e.Page() == page.page {
				as.space.Unmap(va, va+arch.PageSize)
			}
		})
	}
}
