package hybrid

import (
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// untouchedPages are the pages of addresses at which no thread has stored yet. All of them lead to page 0,
// the page of zeros. Accesses are to a page of the address's own, whose accesses move to the page that
// the first store makes.
type untouchedPages struct {
	numbers map[virtualPage]uint64
	next    uint64
	// fresh are pages that no access was to yet since their content appeared.
	fresh map[uint64]bool
}

// firstUntouched is above the numbers of all pages.
const firstUntouched = 1 << 50

func newUntouchedPages() untouchedPages {
	return untouchedPages{numbers: map[virtualPage]uint64{}, next: firstUntouched, fresh: map[uint64]bool{}}
}

// appear notes that the content of a page appears.
func (u *untouchedPages) appear(page uint64) {
	if page != 0 {
		u.fresh[page] = true
	}
}

// physical returns where an access by a process is at an address that leads to a page: pages have one number, however
// many processes they are shared by, at whatever addresses.
func (u *untouchedPages) physical(d *races.Detector, process int, addr, page uint64) uint64 {
	k := virtualPage{process, addr >> pageShift}
	switch {
	case page == 0:
		if page = u.numbers[k]; page == 0 {
			page = u.next
			u.next++
			u.numbers[k] = page
		}
	case len(u.fresh) > 0 && u.fresh[page]:
		delete(u.fresh, page)
		if before, ok := u.numbers[k]; ok {
			delete(u.numbers, k)
			d.CopyPage(page, before, process)
			d.Forget(before<<pageShift, (before+1)<<pageShift)
		}
	}
	return page<<pageShift | addr&(pageSize-1)
}

// physicalAddress is where an access by the thread of a number is.
func (m *ConstraintFinder) physicalAddress(n int, e *event.Memory) uint64 {
	return m.untouched.physical(m.detector, m.threads[n].process, uint64(e.Addr), e.Page)
}
