package debuginfo

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// addPLT adds the entries of the procedure linkage table, under the names of the
// functions that they call. An entry jumps through a slot of the global offset table;
// the relocation of the slot names the function.
func (f *File) addPLT(e *ELF) {
	slots := f.slotFunctions(e)
	if len(slots) == 0 {
		return
	}
	for i := range e.sections {
		s := &e.sections[i]
		if s.kind != elf.SHT_PROGBITS || !strings.HasPrefix(e.sectionName(s), ".plt") {
			continue
		}
		const usualEntry, smallestEntry = 16, 8
		size := s.entrySize
		if size < smallestEntry || size > 64 {
			size = usualEntry
		}
		content := e.readRange(s.offset, s.size, maxTable)
		for at := uint64(0); at+size <= uint64(len(content)); at += size {
			addr := s.addr + at
			if name, ok := slots[jumpSlot(content[at:at+size], addr)]; ok {
				f.symbols = append(f.symbols, Symbol{Addr: addr, Size: size, Kind: PLTEntry, rank: pltRank, name: name})
			}
		}
	}
}

// jumpSlot returns the address that an entry's indirect jump reads its destination
// from, 0 if it has no such jump: FF 25 disp32, JMP m64 relative to RIP.
func jumpSlot(entry []byte, addr uint64) uint64 {
	const length = 6
	for i := 0; i+length <= len(entry); i++ {
		if entry[i] == 0xff && entry[i+1] == 0x25 {
			displacement := int32(binary.LittleEndian.Uint32(entry[i+2:]))
			return addr + uint64(i) + length + uint64(int64(displacement))
		}
	}
	return 0
}

// slotFunctions returns the names of the functions whose addresses the dynamic linker
// stores, by the address of the slot.
func (f *File) slotFunctions(e *ELF) map[uint64][]byte {
	slots := map[uint64][]byte{}
	le := binary.LittleEndian
	for i := range e.sections {
		s := &e.sections[i]
		if s.kind != elf.SHT_RELA {
			continue
		}
		var symbols, names []byte
		if int64(s.link) < int64(len(e.sections)) && e.sections[s.link].kind == elf.SHT_DYNSYM {
			symbols, names = e.symbolTable(&e.sections[s.link])
		}
		for b := e.readRange(s.offset, s.size, maxTable); len(b) >= relocationSize; b = b[relocationSize:] {
			slot, info, addend := le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])
			switch elf.R_X86_64(elf.R_TYPE64(info)) {
			case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT:
				at := uint64(elf.R_SYM64(info)) * symbolSize
				if at == 0 || at+symbolSize > uint64(len(symbols)) {
					continue
				}
				if name := cString(names, uint64(le.Uint32(symbols[at:]))); len(name) > 0 {
					slots[slot] = name
				}
			case elf.R_X86_64_IRELATIVE: // the addend is the address of a resolver
				if resolver, _ := f.FunctionAt(addend); resolver != nil {
					slots[slot] = resolver.name
				}
			}
		}
	}
	f.sorted = false // the entries of the PLT are not yet in the lists
	return slots
}
