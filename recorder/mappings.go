package recorder

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Mappings is the Recording of the files that are mapped: those of a process
// when it runs first, or first after exec, and the later ones of mmap.
type Mappings struct {
	Nothing
	to    *trace.Stream
	known map[int32]bool
}

// NewMappings makes the recording.
func NewMappings(w *trace.Writer) *Mappings {
	return &Mappings{to: w.Stream(trace.Mappings, 0), known: map[int32]bool{}}
}

// Open implements Recording: it writes what is mapped.
func (v *Mappings) Open(r *Recorder) {
	for pid, tasks := range r.Processes {
		if !v.known[pid] {
			continue // it is written when the process runs
		}
		for _, m := range tasks[0].Process().Space().VMAs() {
			if m.File != nil {
				name, _, _ := m.File.MapName()
				trace.Put(v.to, &event.Mapping{
					Stamp: r.Now(tasks[0].ID()), Process: pid, Addr: m.Start, Size: m.Len(), Offset: m.Offset, Name: name,
				})
			}
		}
	}
}

// Begin implements Recording.
func (v *Mappings) Begin(r *Recorder, t *kernel.Task) {
	pid := t.Process().PID()
	if v.known[pid] {
		return
	}
	v.known[pid] = true
	for _, m := range t.Process().Space().VMAs() {
		v.writeMapping(r, t, &m)
	}
}

func (v *Mappings) writeMapping(r *Recorder, t *kernel.Task, m *mm.VMA) {
	if m.File == nil {
		return
	}
	name, _, _ := m.File.MapName()
	trace.Put(v.to, &event.Mapping{
		Stamp: r.nextStamp(t.ID()), Process: t.Process().PID(), Addr: m.Start, Size: m.Len(), Offset: m.Offset, Name: name,
	})
}

// Return implements Recording.
func (v *Mappings) Return(r *Recorder, t *kernel.Task, e *event.Syscall) {
	switch {
	case linux.Has(e.Number, linux.Executes):
		if e.Result == 0 {
			delete(v.known, t.Process().PID())
		}
	case linux.Has(e.Number, linux.MapsFile):
		if space := t.Process().Space(); space != nil {
			if m, ok := space.Find(arch.Addr(e.Result)); ok {
				v.writeMapping(r, t, &m)
			}
		}
	}
}
