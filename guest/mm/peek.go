package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Peek copies what a debugger wants to see of memory, whatever its protection,
// and returns how many bytes there are. It changes nothing: pages that no access
// has brought in yet stay out.
func (as *AddressSpace) Peek(va event.Addr, b []byte) int {
	return as.eachPage(va, b, as.peekPage)
}

// peekPage copies a part of one page; false: there is none.
func (as *AddressSpace) peekPage(at event.Addr, b []byte) bool {
	if at >= TaskSize {
		return false
	}
	if e := as.space.Seen(at); e.Present() {
		copy(b, as.ram.Bytes(e.Page())[at%emu.PageSize:])
		return true
	}
	v := as.lookup(at)
	if v == nil {
		return false
	}
	clear(b)
	if v.Object == nil {
		return true
	}
	_, errno := v.Object.ReadAt(b, int64(v.index(at))*emu.PageSize+int64(at%emu.PageSize))
	return errno == 0 && v.Object.holds(v.index(at))
}

// PeekForced is Peek for a debugger within the guest: of what no program could be
// allowed to read it reads nothing.
func (as *AddressSpace) PeekForced(va event.Addr, b []byte) int {
	return as.eachPage(va, b, func(at event.Addr, part []byte) bool {
		v := as.lookup(at)
		return v != nil && v.MayProt&unix.PROT_READ != 0 && as.peekPage(at, part)
	})
}

// PokeForced writes as a debugger within the guest does, and returns how many bytes it
// could: to private memory whatever its protection, by a copy that the other mappings of
// the page do not see, to shared memory only if it may be written.
func (as *AddressSpace) PokeForced(va event.Addr, b []byte) int {
	return as.eachPage(va, b, as.pokePage)
}

// eachPage calls f for the parts of b in the pages from va on until it returns false, and
// returns the bytes before.
func (as *AddressSpace) eachPage(va event.Addr, b []byte, f func(at event.Addr, part []byte) bool) int {
	done := 0
	for done < len(b) {
		at := va + event.Addr(done)
		n := min(len(b)-done, pageRoom(int64(at)))
		if !f(at, b[done:done+n]) {
			break
		}
		done += n
	}
	return done
}

func (as *AddressSpace) pokePage(at event.Addr, b []byte) bool {
	v := as.lookup(at)
	switch {
	case v == nil:
		return false
	case v.Prot&unix.PROT_WRITE != 0:
		return as.CopyOut(at, b) == 0
	case v.has(Shared):
		return false
	}
	page := at &^ (emu.PageSize - 1)
	if r := as.populate(v, page, emu.AccessRead); r != Resolved {
		return false
	}
	// What may be written is written to a copy if it has other owners.
	rights := as.space.Get(page).Perm()
	as.space.Protect(page, page+emu.PageSize, rights|emu.Read|emu.Write)
	n, _ := as.space.WriteAt(b, at)
	as.space.Protect(page, page+emu.PageSize, rights)
	return n == len(b)
}
