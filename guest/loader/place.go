package loader

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// Place is the position of an address in a file, as far as that is known.
type Place struct {
	Path     string // of the file; empty if the address is in none
	Addr     uint64 // in the file; 0 if it is not known
	Bias     uint64 // added to addresses in the file
	Function string // empty if it is not known
}

// Places finds the functions on the stack of a thread that is stopped with the given
// registers, the innermost first. A caller's place is that of its call.
func (u *Unwinder) Places(as *mm.AddressSpace, r arch.Regs, limit int) []Place {
	var places []Place
	for i, f := range u.Stack(as, r, limit) {
		at := f.PC
		if i > 0 {
			at-- // the call may be the last instruction of its function
		}
		p := u.placeOf(as, at)
		places = append(places, Place{Path: p.path, Addr: p.addr, Bias: uint64(at) - p.addr, Function: f.Function})
	}
	return places
}
