package recorder

import (
	"bytes"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// codePageSize is that of the bookkeeping; the guest's pages do not matter.
const codePageSize = 4096

// codePage is one page of the code that a trace has.
type codePage struct {
	bytes   [codePageSize]byte
	present [codePageSize / 64]uint64
}

// codeMemory is the code that the trace has of all address spaces, as of now.
// Blocks overlap and come cut in many ways, so it goes by bytes.
type codeMemory map[codePlace]*codePage

type codePlace struct {
	space uint64
	page  arch.Addr
}

// storeBlock notes a block of code. It returns whether any byte of it is new or has
// changed.
func (m codeMemory) storeBlock(space uint64, addr arch.Addr, code []byte) (changed bool) {
	for len(code) > 0 {
		at := int(addr % codePageSize)
		n := min(len(code), codePageSize-at)
		if m.pageAt(space, addr/codePageSize).storeBytes(at, code[:n]) {
			changed = true
		}
		addr += arch.Addr(n)
		code = code[n:]
	}
	return changed
}

func (m codeMemory) pageAt(space uint64, number arch.Addr) *codePage {
	k := codePlace{space, number}
	p := m[k]
	if p == nil {
		p = &codePage{}
		m[k] = p
	}
	return p
}

func (p *codePage) storeBytes(at int, code []byte) (changed bool) {
	if !bytes.Equal(p.bytes[at:at+len(code)], code) {
		copy(p.bytes[at:], code)
		changed = true
	}
	for i := at; i < at+len(code); i++ {
		if bit := uint64(1) << (i % 64); p.present[i/64]&bit == 0 {
			p.present[i/64] |= bit
			changed = true
		}
	}
	return changed
}
