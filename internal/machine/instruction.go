package machine

import (
	"fmt"
	"path/filepath"

	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

var errInstruction = errs.Define("instruction-not-available",
	"thread {thread} of {program} has executed {instruction} at {place}: the machine's processor is of level x86-64-v2 and has no {extension}; build the program, or the library, with -march=x86-64-v2",
	"The program, or a library of it, is built for a newer processor than the machine's, or it does not ask the processor (CPUID) before it uses an extension.",
	"Build it with -march=x86-64-v2, that is without -mavx, -mavx2, -mfma, -mbmi and -march=native; of a library choose the build for every x86-64 processor.")

// invalidInstruction says which instruction killed a process because the machine's
// processor does not have it; nil if none did, or if no processor has it.
func (m *Machine) invalidInstruction() error {
	i := m.state.kernel.InvalidInstruction()
	if i == nil {
		return nil
	}
	in, ok := zydis.Decode(i.Code, uint64(i.PC))
	if !ok || in.Extension == "BASE" {
		return nil // UD2 and the like
	}
	return errInstruction.New(i.Thread, i.Path, in.Text, m.placeText(i), in.Extension)
}

// placeText names the place of an instruction: function, source line and file, as far
// as they are known.
func (m *Machine) placeText(i *kernel.InvalidInstruction) string {
	text := fmt.Sprintf("%#x", uint64(i.PC))
	p := i.Place
	if p.Function != "" {
		text += " in " + p.Function
	}
	if p.Path == "" {
		return text
	}
	if f, err := debuginfo.Open(filepath.Join(m.config.RootFS, p.Path)); err == nil {
		if line, ok := f.SourceLine(p.Addr); ok {
			return text + " (" + line + ")"
		}
	}
	return text + " (" + p.Path + ")"
}
