package concolicrun

import (
	"os"

	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// summarizeMappings gives summaries to the functions in the files that a new address space
// maps.
func (r *Recording) summarizeMappings(space uint64, t *kernel.Task) {
	if len(r.options.Summaries) == 0 {
		return
	}
	for _, m := range t.Process().Space().VMAs() {
		if m.File != nil {
			name, _, _ := m.File.MapName()
			r.summarizeLibrary(space, name, uint64(m.Start), m.Len(), m.Offset)
		}
	}
}

// summarizeLibrary gives summaries to the functions in size bytes of a file, from an
// offset, that are mapped at an address. A file that the host does not have under the
// guest's name has none.
func (r *Recording) summarizeLibrary(space uint64, name string, addr, size, offset uint64) {
	if len(r.options.Summaries) == 0 || name == "" {
		return
	}
	functions := r.fileFunctions(name)
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

// fileFunction is the offset of a function in its file. If the function is chosen when the
// program is linked (IFUNC), it is the offset of its resolver.
type fileFunction struct {
	offset uint64
	chosen bool
}

// fileFunctions returns the named functions of a file, by name.
func (r *Recording) fileFunctions(path string) map[string]fileFunction {
	if known, ok := r.files[path]; ok {
		return known
	}
	all := map[string]fileFunction{}
	r.files[path] = all
	host, err := os.Open(path)
	if err != nil {
		return all
	}
	defer host.Close()
	e, err := debuginfo.ParseELF(host)
	if err != nil {
		return all
	}
	f := debuginfo.NewFile(e)
	symbols := f.Symbols()
	for i := range symbols {
		s := &symbols[i]
		name := string(s.RawName())
		if _, known := all[name]; known || s.Kind != debuginfo.Function && s.Kind != debuginfo.Resolver {
			continue
		}
		if offset, ok := f.Offset(s.Addr); ok {
			all[name] = fileFunction{offset, s.Kind == debuginfo.Resolver}
		}
	}
	return all
}
