package region

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/symbolplace"
)

// purpose says how a place in code bounds a region.
type purpose uint8

const (
	begins purpose = 1 << iota
	ends
	returns  // of a function that begins it: a return address
	declares // state
)

// The instruction of a mark of heddle.h: a NOP with this displacement after the byte that has the kind.
var (
	markStart = []byte{0x0f, 0x1f, 0x80}
	markEnd   = []byte{0x6c, 0x64, 0x68}
)

const (
	markTaskBegins = 2
	markTaskEnds   = 3
	markBegins     = 5
	markEnds       = 6
	markState      = 7
	markLength     = 7
)

// placesIn returns where the code of a mapping concerns the region, or declares state if the Watcher is to be told of that.
func (w *Watcher) placesIn(v *mm.VMA) map[arch.Addr]purpose {
	if v.Prot&unix.PROT_EXEC == 0 || v.File == nil || v.Object == nil {
		return nil
	}
	places := w.spec.placesIn(v)
	if w.OnState == nil {
		return places
	}
	all := marksIn(v, map[byte]purpose{markState: declares})
	for at, p := range places {
		all[at] |= p
	}
	return all
}

func (s Spec) placesIn(v *mm.VMA) map[arch.Addr]purpose {
	switch s.Kind {
	case Marks:
		return marksIn(v, map[byte]purpose{markBegins: begins, markEnds: ends})
	case TaskMarks:
		return marksIn(v, map[byte]purpose{markTaskBegins: begins, markTaskEnds: ends})
	case Function, Calls:
		return s.functionsIn(v)
	}
	return nil
}

func marksIn(v *mm.VMA, kinds map[byte]purpose) map[arch.Addr]purpose {
	code := make([]byte, min(v.Len(), uint64(max(v.Object.Size()-int64(v.Offset), 0))))
	n, _ := symbolplace.ObjectReader{Object: v.Object}.ReadAt(code, int64(v.Offset))
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
		if p := kinds[code[at+3]]; p != 0 {
			places[v.Start+arch.Addr(at)] = p
		}
	}
}

func (s Spec) functionsIn(v *mm.VMA) map[arch.Addr]purpose {
	places := map[arch.Addr]purpose{}
	for _, at := range symbolplace.FunctionIn(v, s.From) {
		places[at] |= begins
	}
	if s.Kind == Calls {
		for _, at := range symbolplace.FunctionIn(v, s.To) {
			places[at] |= ends
		}
	}
	return places
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
