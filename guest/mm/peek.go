package mm

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Peek copies what a debugger wants to see of memory, whatever its protection,
// and returns how many bytes there are. It changes nothing: pages that no access
// has brought in yet stay out.
func (as *AddressSpace) Peek(va event.Addr, b []byte) int {
	done := 0
	for done < len(b) {
		at := va + event.Addr(done)
		n := min(len(b)-done, pageRoom(int64(at)))
		if !as.peekPage(at, b[done:done+n]) {
			break
		}
		done += n
	}
	return done
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
