package follow

import (
	"debug/elf"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// library finds the functions with summaries in a file that was mapped. A file
// that the host does not have under the guest's name has none.
func (r *Recording) library(e *event.Input) {
	if len(r.options.Summaries) == 0 || e.Name == "" {
		return
	}
	functions := r.functions(e.Name)
	for _, s := range r.options.Summaries {
		offset, ok := functions[s.Function]
		if at := offset - uint64(e.Offset); ok && at < e.Size {
			r.Executor.Summarize(r.space(r.task), uint64(e.Addr)+at, s)
		}
	}
}

// functions are where in a file its dynamic functions are, by name. Those that
// choose among several when they are bound (IFUNC) are left out.
func (r *Recording) functions(path string) map[string]uint64 {
	if known, ok := r.files[path]; ok {
		return known
	}
	offsets := map[string]uint64{}
	r.files[path] = offsets
	f, err := elf.Open(path)
	if err != nil {
		return offsets
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return offsets
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				offsets[s.Name] = s.Value - p.Vaddr + p.Off
			}
		}
	}
	return offsets
}
