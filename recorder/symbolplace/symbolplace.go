// Package symbolplace finds functions in the code that a process has mapped.
package symbolplace

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// ObjectReader reads an object of the guest.
type ObjectReader struct{ Object *mm.Object }

// ReadAt implements io.ReaderAt.
func (r ObjectReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, io.EOF
	}
	n, errno := r.Object.ReadAt(p, off)
	if errno != 0 || n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// FunctionIn lists the addresses of the functions of a name in the code of a mapping: demangled, with or without the
// types of parameters, or as it is in the file.
func FunctionIn(v *mm.VMA, name string) (list []arch.Addr) {
	if v.Prot&unix.PROT_EXEC == 0 || v.File == nil || v.Object == nil {
		return nil
	}
	e, err := debuginfo.ParseELF(ObjectReader{v.Object})
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
