package schedules

import (
	"fmt"
	"path/filepath"

	"github.com/heddle-dmt/heddle/analyses/symbols"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// places tells where in the source instructions of a recorded run are, as far as
// the host has the files that the guest had. It is for people: nothing depends on
// it.
type places struct {
	mappings []event.Mapping
	files    map[string]*symbols.File
}

func newPlaces(r *trace.Reader) (*places, error) {
	p := &places{files: map[string]*symbols.File{}}
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		p.mappings = append(p.mappings, m)
	}
	return p, nil
}

// of is the source line of an instruction, or its function, or empty.
func (p *places) of(pc event.Addr) string {
	for i := len(p.mappings) - 1; i >= 0; i-- {
		m := &p.mappings[i]
		if pc < m.Addr || uint64(pc-m.Addr) >= m.Size {
			continue
		}
		f := p.file(m.Name)
		if f == nil {
			return ""
		}
		addr, ok := f.Address(m.Offset + uint64(pc-m.Addr))
		if !ok {
			return ""
		}
		if file, line, ok := f.Line(addr); ok {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
		if name, offset, ok := f.Function(addr); ok {
			return fmt.Sprintf("%s+%#x", name, offset)
		}
		return ""
	}
	return ""
}

// file is nil if it cannot be read.
func (p *places) file(name string) *symbols.File {
	f, known := p.files[name]
	if !known {
		f, _ = symbols.Open(name)
		p.files[name] = f
	}
	return f
}

// notes say where the constraints of a schedule are in the source.
func notes(path string, s *event.Schedule) ([]string, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p, err := newPlaces(r)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(s.Constraints))
	for i := range s.Constraints {
		first, second := p.of(s.Constraints[i].First.PC), p.of(s.Constraints[i].Second.PC)
		if first != "" || second != "" {
			list[i] = fmt.Sprintf("%s -> %s", first, second)
		}
	}
	return list, nil
}
