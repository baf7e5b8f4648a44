package concolicrun

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// MappedFile is a chosen file that the run mapped.
type MappedFile struct {
	// Name is the file's name in symbols, and Size its size: the expressions hold for files of this size only, as
	// what lies behind the end of a file in its last page depends on it.
	Name string
	Size uint64
	// Whole is set if the bytes are no symbols, because they are code, the run may write them through another
	// mapping, or they are too many: the expressions hold for the recorded content only.
	Whole bool
}

// Mapped returns the chosen files that the run mapped, in the order in which it did.
func (r *Recording) Mapped() []MappedFile { return r.mapped }

// followMap makes symbols of the bytes of a chosen file that was mapped.
func (r *Recording) followMap(e *event.Input) {
	chosen, name := r.mappedInput(e.Name)
	if !chosen {
		return
	}
	v, ok := r.task.Process().Space().Find(e.Addr)
	if !ok || v.Object == nil {
		return
	}
	size := uint64(v.Object.Size())
	m := MappedFile{Name: name, Size: size, Whole: v.Prot&unix.PROT_EXEC != 0 || v.Flags&mm.Shared != 0 && v.MayProt&unix.PROT_WRITE != 0}
	n := uint64(0)
	if uint64(e.Offset) < size {
		n = min(e.Size, size-uint64(e.Offset))
	}
	var data []byte
	switch limit := r.options.MaxTerms; {
	case m.Whole:
	case limit > 0 && n > uint64(limit):
		m.Whole = true
	default:
		data = make([]byte, n)
		if got, _ := v.Object.ReadAt(data, e.Offset); got < len(data) {
			m.Whole, data = true, nil
		}
	}
	r.mapped = append(r.mapped, m)
	if len(data) == 0 {
		return
	}
	space := r.spaceNumber(r.task)
	r.Executor.Input(space, uint64(e.Addr), contentName(name), int(e.Offset), data)
	r.addEvent(blocktrace.Event{
		Kind: blocktrace.Input, Thread: r.task.ID(), Space: space, Addr: uint64(e.Addr), Size: n, Name: contentName(name), First: int(e.Offset),
	})
}

// followAdvice records what madvise(2) does to the bytes of a mapping: most advice changes none; what drops pages gives
// those of a file their first content, which is then no symbol, so that the file's content is fixed.
func (r *Recording) followAdvice(t *kernel.Task, addr, size, advice uint64) {
	switch advice {
	case unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE,
		unix.MADV_MERGEABLE, unix.MADV_UNMERGEABLE, unix.MADV_DONTFORK, unix.MADV_DOFORK, unix.MADV_DONTDUMP, unix.MADV_DODUMP,
		unix.MADV_COLD, unix.MADV_PAGEOUT, unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE:
		return
	}
	r.overwriteMemory(t, addr, size)
	v, ok := t.Process().Space().Find(arch.Addr(addr))
	if !ok || v.File == nil {
		return
	}
	path, _, _ := v.File.MapName()
	if chosen, name := r.mappedInput(path); chosen {
		r.mapped = append(r.mapped, MappedFile{Name: name, Size: uint64(v.Object.Size()), Whole: true})
	}
}

// mappedInput reports whether a file that was mapped is chosen, and returns its name in symbols.
func (r *Recording) mappedInput(path string) (chosen bool, name string) {
	if r.options.Dir == "" || path == "" {
		return false, ""
	}
	e, name := event.Input{Source: event.InputFile, Name: path}, r.options.FileName(path)
	if path == r.options.Stdin {
		e.Source, name = event.InputStdin, "stdin"
	}
	return r.options.Choose(&e), name
}

// constantRange returns the bounds of a file mapping around an address that is not
// writable, and is no input.
func (r *Recording) constantRange(_, addr uint64) (low, high uint64) {
	v, ok := r.task.Process().Space().Find(arch.Addr(addr))
	if !ok || v.File == nil || v.Flags&mm.Shared != 0 || v.Prot&unix.PROT_WRITE != 0 {
		return 0, 0
	}
	path, _, _ := v.File.MapName()
	if chosen, _ := r.mappedInput(path); chosen {
		return 0, 0
	}
	return uint64(v.Start), uint64(v.End)
}
