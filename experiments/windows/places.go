package windows

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/symbolplace"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// placeNames names the server's memory for the report: variables by symbols of the program and its libraries, and blocks of the
// heap by the place that has allocated them.
type placeNames struct {
	files  map[*mm.Object]*debuginfo.File // nil: no ELF file
	blocks map[int32]map[arch.Addr]heapBlock
	states map[int32][]declaredState
}

// declaredState is memory that a program has declared as state by heddle_state of heddle.h.
type declaredState struct {
	at   arch.Addr
	size uint64
	name string
}

// noteDeclaration takes a declaration. It replaces one of the same memory.
func (n *placeNames) noteDeclaration(process int32, s declaredState) {
	if n.states == nil {
		n.states = map[int32][]declaredState{}
	}
	list := slices.DeleteFunc(slices.Clone(n.states[process]), func(x declaredState) bool { return x.at == s.at })
	n.states[process] = append(list, s)
}

// declaredAt names a byte of declared state.
func (n *placeNames) declaredAt(process int32, at arch.Addr) (name string, ok bool) {
	for _, s := range n.states[process] {
		if at >= s.at && uint64(at-s.at) < s.size {
			return withOffset(s.name, uint64(at-s.at)), true
		}
	}
	return "", false
}

// heapBlock is a block that an allocator has returned to an address.
type heapBlock struct {
	size uint64
	site arch.Addr
}

// noteAllocation takes the return of an allocator's function.
func (n *placeNames) noteAllocation(process int32, e *event.Heap) {
	blocks := n.blocks[process]
	if blocks == nil {
		if n.blocks == nil {
			n.blocks = map[int32]map[arch.Addr]heapBlock{}
		}
		blocks = map[arch.Addr]heapBlock{}
		n.blocks[process] = blocks
	}
	delete(blocks, e.Old)
	if e.Op != event.HeapFree && e.Addr != 0 {
		blocks[e.Addr] = heapBlock{e.Size, e.PC}
	}
}

// noteFork gives a new process its parent's blocks and states.
func (n *placeNames) noteFork(parent, child int32) {
	if n.blocks[parent] != nil && n.blocks[child] == nil {
		n.blocks[child] = maps.Clone(n.blocks[parent])
	}
	if n.states[parent] != nil && n.states[child] == nil {
		n.states[child] = n.states[parent]
	}
}

// blockAt returns the block of a process that contains an address.
func (n *placeNames) blockAt(process int32, at arch.Addr) (start arch.Addr, b heapBlock, ok bool) {
	for from, x := range n.blocks[process] {
		if at >= from && at < from+arch.Addr(x.size) && from >= start {
			start, b, ok = from, x, true
		}
	}
	return start, b, ok
}

// fileOf returns the ELF file that is mapped, or nil.
func (n *placeNames) fileOf(v *mm.VMA) *debuginfo.File {
	if v.File == nil || v.Object == nil {
		return nil
	}
	f, known := n.files[v.Object]
	if !known {
		if e, err := debuginfo.ParseELF(symbolplace.ObjectReader{Object: v.Object}); err == nil {
			f = debuginfo.NewFile(e)
		}
		if n.files == nil {
			n.files = map[*mm.Object]*debuginfo.File{}
		}
		n.files[v.Object] = f
	}
	return f
}

// imageAddress is an address in an ELF file that a process has mapped.
type imageAddress struct {
	file *debuginfo.File
	name string
	addr uint64
}

// imageAt finds the ELF file whose segments contain an address, in its memory after the file's content too.
func (n *placeNames) imageAt(list []mm.VMA, at arch.Addr) (a imageAddress, ok bool) {
	i, _ := slices.BinarySearchFunc(list, at, func(v mm.VMA, at arch.Addr) int { return cmp.Compare(v.Start, at+1) })
	for i--; i >= 0; i-- {
		v := &list[i]
		f := n.fileOf(v)
		if f == nil {
			if v.File != nil {
				return a, false
			}
			continue
		}
		first, known := f.Address(v.Offset)
		_, end := f.Extent()
		if addr := first + uint64(at-v.Start); known && addr < end {
			path, _, _ := v.File.MapName()
			return imageAddress{f, filepath.Base(path), addr}, true
		}
		return a, false
	}
	return a, false
}

// nameOf names an address in the memory of a process.
func (n *placeNames) nameOf(p *kernel.Process, at arch.Addr) string {
	list := p.Space().VMAs()
	if a, ok := n.imageAt(list, at); ok {
		if y, offset := a.file.VariableAt(a.addr); y != nil {
			return withOffset(y.Name(), offset) + " of " + a.name
		}
		return fmt.Sprintf("%s+%#x", a.name, a.addr)
	}
	if start, b, ok := n.blockAt(p.PID(), at); ok {
		return fmt.Sprintf("byte %d of a block of %d, allocated at %s", at-start, b.size, n.siteOf(list, b.site))
	}
	if v, ok := p.Space().Find(at); ok {
		for _, t := range p.Threads() {
			var r arch.Regs
			var fp [arch.FPSize]byte
			if t.Registers(&r, &fp); arch.Addr(r.GPR[arch.RSP]) >= v.Start && arch.Addr(r.GPR[arch.RSP]) < v.End && v.Prot&unix.PROT_WRITE != 0 {
				return fmt.Sprintf("stack of thread %d, %d bytes above its top", t.ID(), int64(at)-int64(r.GPR[arch.RSP]))
			}
		}
		return fmt.Sprintf("memory at %#x+%#x", uint64(v.Start), uint64(at-v.Start))
	}
	return ""
}

// siteOf names an instruction.
func (n *placeNames) siteOf(list []mm.VMA, at arch.Addr) string {
	a, ok := n.imageAt(list, at)
	if !ok {
		return fmt.Sprintf("%#x", uint64(at))
	}
	if y, offset := a.file.FunctionAt(a.addr); y != nil {
		return withOffset(y.Name(), offset) + " of " + a.name
	}
	return fmt.Sprintf("%s+%#x", a.name, a.addr)
}

func withOffset(name string, offset uint64) string {
	if offset == 0 {
		return name
	}
	return fmt.Sprintf("%s+%d", name, offset)
}

// placeOf names a byte of the server's memory, and says whether the program has declared it as state.
func (d *Driver) placeOf(o windows.Obstacle) (place string, declared bool) {
	if _, _, ok := registerAt(o.At); ok {
		return registerName(o.At), false
	}
	if place, declared = d.hidden.names.declaredAt(o.Process, o.At); declared {
		return place, true
	}
	for _, p := range d.service().Processes() {
		if p.PID() == o.Process && p.Space() != nil {
			return d.hidden.names.nameOf(p, o.At), false
		}
	}
	return "", false
}
