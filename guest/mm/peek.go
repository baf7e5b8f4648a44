package mm

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Peek copies memory for a debugger, whatever its protection, and returns the number of
// bytes. It changes nothing: pages that are not resident stay so.
func (as *AddressSpace) Peek(va arch.Addr, b []byte) int {
	return as.forEachPage(va, b, as.peekPage)
}

// peekPage copies a part of one page; false: there is no page.
func (as *AddressSpace) peekPage(at arch.Addr, b []byte) bool {
	if at >= TaskSize {
		return false
	}
	if e := as.space.Seen(at); e.Present() {
		copy(b, as.ram.Bytes(e.Page())[at%arch.PageSize:])
		return true
	}
	v := as.findPointer(at)
	if v == nil {
		return false
	}
	clear(b)
	if v.Object == nil {
		return true
	}
	_, errno := v.Object.ReadAt(b, int64(v.objectIndex(at))*arch.PageSize+int64(at%arch.PageSize))
	return errno == 0 && v.Object.contains(v.objectIndex(at))
}

// PeekForced is Peek for a debugger within the guest: it does not read memory that no
// program could be allowed to read.
func (as *AddressSpace) PeekForced(va arch.Addr, b []byte) int {
	return as.forEachPage(va, b, func(at arch.Addr, part []byte) bool {
		v := as.findPointer(at)
		return v != nil && v.MayProt&unix.PROT_READ != 0 && as.peekPage(at, part)
	})
}

// PokeForced writes as a debugger within the guest does, and returns the number of
// bytes: to private memory whatever its protection, by a copy that the other mappings
// of the page do not see, to shared memory only if it may be written.
func (as *AddressSpace) PokeForced(va arch.Addr, b []byte) int {
	return as.forEachPage(va, b, as.pokePage)
}

// forEachPage calls f for the parts of b in the pages from va on until it returns
// false, and returns the number of bytes before.
func (as *AddressSpace) forEachPage(va arch.Addr, b []byte, f func(at arch.Addr, part []byte) bool) int {
	done := 0
	for done < len(b) {
		at := va + arch.Addr(done)
		n := min(len(b)-done, bytesToPageEnd(int64(at)))
		if !f(at, b[done:done+n]) {
			break
		}
		done += n
	}
	return done
}

func (as *AddressSpace) pokePage(at arch.Addr, b []byte) bool {
	v := as.findPointer(at)
	switch {
	case v == nil:
		return false
	case v.Prot&unix.PROT_WRITE != 0:
		return as.CopyOut(at, b) == 0
	case v.hasFlags(Shared):
		return false
	}
	page := at &^ (arch.PageSize - 1)
	if r := as.populate(v, page, arch.AccessRead); r != Resolved {
		return false
	}
	// A page that may be written is copied first if it has other owners.
	rights := as.space.Get(page).Perm()
	as.space.Protect(page, page+arch.PageSize, rights|arch.Read|arch.Write)
	n, _ := as.space.WriteAt(b, at)
	as.space.Protect(page, page+arch.PageSize, rights)
	return n == len(b)
}
