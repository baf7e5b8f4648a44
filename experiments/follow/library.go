package follow

import (
	"debug/elf"

	"github.com/heddle-dmt/heddle/guest/kernel"
)

// mappings finds the functions with summaries in the files that a new address space
// has.
func (r *Recording) mappings(space uint64, t *kernel.Task) {
	if len(r.options.Summaries) == 0 {
		return
	}
	for _, m := range t.Process().Space().VMAs() {
		if m.File != nil {
			name, _, _ := m.File.MapName()
			r.library(space, name, uint64(m.Start), m.Len(), m.Offset)
		}
	}
}

// library finds the functions with summaries in so many bytes of a file, from an
// offset on, that are mapped at an address. A file that the host does not have under
// the guest's name has none.
func (r *Recording) library(space uint64, name string, addr, size, offset uint64) {
	if len(r.options.Summaries) == 0 || name == "" {
		return
	}
	functions := r.functions(name)
	for _, s := range r.options.Summaries {
		f, ok := functions[s.Function]
		switch at := f.offset - offset; {
		case !ok || at >= size:
		case f.chosen:
			r.Executor.SummarizeChosen(space, addr+at, s)
		default:
			r.Executor.Summarize(space, addr+at, s)
		}
	}
}

// function is where in a file a function is. If it is chosen when the program is
// linked (IFUNC), that is where the function is that chooses.
type function struct {
	offset uint64
	chosen bool
}

// ifunc is a symbol's type of a function that is chosen (the ELF gABI supplement for
// Linux, STT_GNU_IFUNC).
const ifunc = elf.STT_LOOS

// functions are the functions of a file that have names, by name.
func (r *Recording) functions(path string) map[string]function {
	if known, ok := r.files[path]; ok {
		return known
	}
	all := map[string]function{}
	r.files[path] = all
	f, err := elf.Open(path)
	if err != nil {
		return all
	}
	defer f.Close()
	for _, table := range []func() ([]elf.Symbol, error){f.DynamicSymbols, f.Symbols} {
		symbols, err := table()
		if err != nil {
			continue // there is none
		}
		for _, s := range symbols {
			place(f, &s, all)
		}
	}
	return all
}

// place adds a symbol, if it is a function of the file.
func place(f *elf.File, s *elf.Symbol, all map[string]function) {
	kind := elf.ST_TYPE(s.Info)
	if _, known := all[s.Name]; known || kind != elf.STT_FUNC && kind != ifunc || s.Section == elf.SHN_UNDEF {
		return
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
			all[s.Name] = function{s.Value - p.Vaddr + p.Off, kind == ifunc}
		}
	}
}
