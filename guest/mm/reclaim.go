package mm

import "github.com/heddle-dmt/heddle/emu"

// Reclaimer gives back guest memory whose content can be had again: pages of
// host files that nobody has changed.
type Reclaimer interface {
	// Reclaim gives back what it can and returns the number of pages.
	Reclaim() int
}

// reclaimed is the number of pages that must be free after memory was
// reclaimed. With less, pages would go as soon as they come, and a program
// would crawl on with what one instruction needs.
const reclaimed = 256

// reclaim makes room when guest memory is used up, and tells whether there is
// enough now.
func (as *AddressSpace) reclaim() bool {
	if as.Reclaimer == nil || as.Reclaimer.Reclaim() == 0 {
		return false
	}
	free := int64(as.ram.Limit()) - int64(as.ram.Used()+as.ram.Tables())
	return free >= int64(min(reclaimed, as.ram.Limit()/16))
}

// Starved tells whether the kernel could not reach a page of the address space
// since the last call because guest memory is used up.
func (as *AddressSpace) Starved() bool {
	was := as.starved
	as.starved = false
	return was
}

// DropClean gives back the pages of the object that were never asked for to be
// written, and returns how many: they are read from the source again when they
// are needed. Mappings lose their entries for them; copies that private
// mappings made by writing stay. Nothing goes while a mapping is locked.
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
	o.pages.each(0, ^uint64(0), func(i uint64, p objectPage) {
		if !p.dirty() {
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
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v.Object != o {
			continue
		}
		first := v.Offset / emu.PageSize
		o.pages.each(first, first+v.pages(), func(i uint64, page objectPage) {
			va, _ := v.at(i)
			if e := as.space.Get(va); !page.dirty() && e.Present() && e.Page() == page.page {
				as.space.Unmap(va, va+emu.PageSize)
			}
		})
	}
}
