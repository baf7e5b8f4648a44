package region

import (
	"bytes"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// purpose says how a place in code bounds a region.
type purpose uint8

const (
	begins purpose = 1 << iota
	ends
	returns // of a function that begins it: a return address
)

// The instruction of a mark of heddle.h: a NOP with this displacement after the byte that has the kind.
var (
	markStart = []byte{0x0f, 0x1f, 0x80}
	markEnd   = []byte{0x6c, 0x64, 0x68}
)

const (
	markBegins = 5
	markEnds   = 6
	markLength = 7
)

// objectReader reads an object of the guest.
type objectReader struct{ object *mm.Object }

// ReadAt implements io.ReaderAt.
func (r objectReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, io.EOF
	}
	n, errno := r.object.ReadAt(p, off)
	if errno != 0 || n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// placesIn returns where the code of a mapping concerns the region.
func (s Spec) placesIn(v *mm.VMA) map[arch.Addr]purpose {
	if v.Prot&unix.PROT_EXEC == 0 || v.File == nil || v.Object == nil {
		return nil
	}
	switch s.Kind {
	case Marks:
		return marksIn(v)
	case Function, Calls:
		return s.functionsIn(v)
	}
	return nil
}

func marksIn(v *mm.VMA) map[arch.Addr]purpose {
	code := make([]byte, min(v.Len(), uint64(max(v.Object.Size()-int64(v.Offset), 0))))
	n, _ := objectReader{v.Object}.ReadAt(code, int64(v.Offset))
	code = code[:n]
	places := map[arch.Addr]purpose{}
	for at := 0; ; at++ {
		next := bytes.Index(code[at:], markStart)
		if next < 0 || at+next+markLength > len(code) {
			return places
		}
		at += next
		if !bytes.Equal(code[at+4:at+markLength], markEnd) {
			continue
		}
		switch code[at+3] {
		case markBegins:
			places[v.Start+arch.Addr(at)] |= begins
		case markEnds:
			places[v.Start+arch.Addr(at)] |= ends
		}
	}
}

func (s Spec) functionsIn(v *mm.VMA) map[arch.Addr]purpose {
	places := map[arch.Addr]purpose{}
	for _, at := range FunctionIn(v, s.From) {
		places[at] |= begins
	}
	if s.Kind == Calls {
		for _, at := range FunctionIn(v, s.To) {
			places[at] |= ends
		}
	}
	return places
}

// FunctionIn lists the addresses of the functions of a name in the code of a mapping: demangled, with or without the
// types of parameters, or as it is in the file.
func FunctionIn(v *mm.VMA, name string) (list []arch.Addr) {
	if v.Prot&unix.PROT_EXEC == 0 || v.File == nil || v.Object == nil {
		return nil
	}
	e, err := debuginfo.ParseELF(objectReader{v.Object})
	if err != nil {
		return nil
	}
	f := debuginfo.NewFile(e)
	start, ok := f.Address(v.Offset)
	if !ok {
		return nil
	}
	symbols := f.Symbols()
	for i := range symbols {
		x := &symbols[i]
		if x.Kind == debuginfo.Function && x.Addr >= start && x.Addr < start+v.Len() && isNamed(x, name) {
			list = append(list, v.Start+arch.Addr(x.Addr-start))
		}
	}
	return list
}

// isNamed reports whether a symbol has a name, demangled, with or without the types of its parameters, or as it is
// in the file.
func isNamed(x *debuginfo.Symbol, name string) bool {
	if string(x.RawName()) == name {
		return true
	}
	plain := x.Name()
	return plain == name || len(plain) > len(name) && plain[:len(name)] == name && plain[len(name)] == '('
}

// sortedPlaces are the addresses of places.
func sortedPlaces(places map[arch.Addr]purpose) []arch.Addr {
	list := make([]arch.Addr, 0, len(places))
	for at := range places {
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}
