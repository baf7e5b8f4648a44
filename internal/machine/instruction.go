package machine

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

var (
	errInstruction = errs.Define("instruction-not-available",
		"thread {thread} of {program} has executed {instruction} at {place}: an instruction of {extension}, which the machine's processor of level {level} does not have; build the program, or the library, with -march={level}",
		"The program, or a library of it, is built for a processor with more extensions than the machine's, or it does not ask the processor (CPUID) before it uses an extension.",
		"Build it with -march=x86-64-v2 or -march=x86-64-v3, that is without -maes, -mpclmul and -march=native; of a library choose the build for every x86-64 processor.")

	errLevel3 = errs.Define("instruction-of-level-3",
		"thread {thread} of {program} has executed {instruction} at {place}: an instruction of level x86-64-v3 ({extension}), and the machine's processor is of level x86-64-v2; run it with --cpu x86-64-v3",
		"The program, or a library of it, is built for x86-64-v3, or it does not ask the processor (CPUID) before it uses an extension.",
		"Run it with --cpu x86-64-v3, for which the host's processor must be of that level too, or build it with -march=x86-64-v2, that is without -mavx, -mavx2, -mfma, -mbmi and -march=native.")

	errLevel4 = errs.Define("instruction-of-level-4",
		"thread {thread} of {program} has executed {instruction} at {place}: an instruction of level x86-64-v4 ({extension}), and the machine's processor is of level {level}; AVX-512 is not provided, build the program, or the library, with -march={level}",
		"The program, or a library of it, is built for AVX-512, or it does not ask the processor (CPUID) before it uses it.",
		"Build it with -march=x86-64-v3 and run it with --cpu x86-64-v3, or build it with -march=x86-64-v2, that is without -mavx512f and -march=native.")
)

var (
	errLoader3 = errs.Define("loader-needs-level-3",
		"glibc has refused a program, or a library of it, because the machine's processor is of level x86-64-v2; run it with --cpu x86-64-v3",
		"The dynamic loader compares the level that a file is built for with the processor's.",
		"Run it with --cpu x86-64-v3, for which the host's processor must be of that level too, or use a build for x86-64-v2.")

	errLoader4 = errs.Define("loader-needs-level-4",
		"glibc has refused a program, or a library of it, because the machine's processor is of level {level}; AVX-512 is not provided, use a build for that level",
		"The dynamic loader compares the level that a file is built for with the processor's.",
		"Use a build for x86-64-v3 or lower.")
)

// refusesLevel reports whether an output is the message of glibc's loader about the processor's level
// (sysdeps/x86/dl-prop.h and sysdeps/x86/dl-get-cpu-features.c).
func refusesLevel(p []byte) bool {
	return bytes.Contains(p, []byte("CPU ISA level is lower than required")) || bytes.Contains(p, []byte("CPU does not support x86-64-v"))
}

// refusedProgram says that glibc has refused to start a program; nil if it has not.
func (m *Machine) refusedProgram() error {
	const status = 127 // of glibc's loader
	switch {
	case !m.state.digest.refusedLevel || m.result.ExitCode != status:
		return nil
	case m.config.CPU < arch.V3:
		return errLoader3.New()
	}
	return errLoader4.New(m.config.CPU.String())
}

// level3 are the extensions of level x86-64-v3 (psABI, section 3.1.1), as Zydis names them.
var level3 = []string{"AVX", "AVX2", "AVX2GATHER", "BMI1", "BMI2", "F16C", "FMA", "LZCNT", "MOVBE", "XSAVE"}

// invalidInstruction says which instruction killed a process because the machine's
// processor does not have it; nil if none did, or if no processor has it.
func (m *Machine) invalidInstruction() error {
	i := m.state.kernel.InvalidInstruction()
	if i == nil {
		return nil
	}
	in, ok := zydis.Decode(i.Code, uint64(i.PC))
	level := m.config.CPU
	switch {
	case !ok || in.Extension == "BASE":
		return nil // UD2 and the like
	case strings.HasPrefix(in.Extension, "AVX512"):
		return errLevel4.New(i.Thread, i.Path, in.Text, m.placeText(i), in.Extension, level.String(), level.String())
	case !slices.Contains(level3, in.Extension):
		return errInstruction.New(i.Thread, i.Path, in.Text, m.placeText(i), in.Extension, level.String(), level.String())
	case level < arch.V3:
		return errLevel3.New(i.Thread, i.Path, in.Text, m.placeText(i), in.Extension)
	}
	return nil
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
