package peregrine

import (
	"fmt"
	"path/filepath"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// sourceLines finds the source lines of instructions of a recorded run, as far as the host has the
// files that the guest had. It is for people: nothing depends on it.
type sourceLines struct {
	mappings []event.Mapping
	files    map[string]*debuginfo.File
}

func newSourceLines(r *trace.Reader) (*sourceLines, error) {
	p := &sourceLines{files: map[string]*debuginfo.File{}}
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		p.mappings = append(p.mappings, m)
	}
	return p, nil
}

// lineOf is the source line of an instruction, or its function, or its place in the file; empty if it is in none.
func (p *sourceLines) lineOf(pc arch.Addr) string {
	for i := len(p.mappings) - 1; i >= 0; i-- {
		m := &p.mappings[i]
		if pc < m.Addr || uint64(pc-m.Addr) >= m.Size {
			continue
		}
		at := m.Offset + uint64(pc-m.Addr)
		f := p.openFile(m.Name)
		addr, ok := uint64(0), false
		if f != nil {
			addr, ok = f.Address(at)
		}
		if !ok {
			return fmt.Sprintf("%s, byte %#x", filepath.Base(m.Name), at)
		}
		if file, line, ok := f.Line(addr); ok {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
		if function, offset := f.FunctionAt(addr); function != nil {
			return fmt.Sprintf("%s+%#x", function.Name(), offset)
		}
		return fmt.Sprintf("%s+%#x", filepath.Base(m.Name), addr)
	}
	return ""
}

// openFile is nil if it cannot be read.
func (p *sourceLines) openFile(name string) *debuginfo.File {
	f, known := p.files[name]
	if !known {
		f, _ = debuginfo.Open(name)
		p.files[name] = f
	}
	return f
}

// addNotes says where the constraints and the spin loops of a schedule are in the source.
func addNotes(path string, f *hybrid.File) error {
	s := f.Schedule
	r, err := trace.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := newSourceLines(r)
	if err != nil {
		return err
	}
	f.Notes = make([]string, len(s.Constraints))
	for i := range s.Constraints {
		first, second := p.lineOf(s.Constraints[i].First.PC), p.lineOf(s.Constraints[i].Second.PC)
		if first != "" || second != "" {
			f.Notes[i] = fmt.Sprintf("%s -> %s", first, second)
		}
	}
	for i := range f.SpinLoops {
		l := &f.SpinLoops[i]
		if at, by := p.lineOf(l.PC), p.lineOf(l.Writers[0]); at != "" || by != "" {
			l.Note = fmt.Sprintf("%s waits for %s", at, by)
		}
	}
	return nil
}
