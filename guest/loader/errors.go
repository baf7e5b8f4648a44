package loader

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errs"
)

// Error is the reason why a program cannot be started: the result of execve for the
// guest, and the sentence for the user.
type Error struct {
	Errno unix.Errno
	Err   error // of a Kind of package errs
}

// Error is the sentence.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the sentence as an error of its Kind.
func (e *Error) Unwrap() error { return e.Err }

// Errno is the result of execve for an error from Load; 0 for nil.
func Errno(err error) unix.Errno {
	if err == nil {
		return 0
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Errno
	}
	return unix.ENOEXEC
}

func newError(errno unix.Errno, err error) error { return &Error{errno, err} }

var (
	errOpen = errs.Define("program-cannot-be-opened",
		"cannot run {path}",
		"The program is not visible to the guest, or may not be executed.",
		"Check the path and the file's mode; show its folder to the guest with --mount, or name it below --rootfs.")

	errDirectory = errs.Define("program-is-directory",
		"cannot run {path}: it is a directory",
		"The path after -- names a folder.",
		"Name the program inside it.")

	errRead = errs.Define("program-cannot-be-read",
		"cannot run {path}: it cannot be read",
		"The host failed to read the file.",
		"Check the file and the disk it lies on.")

	errNotProgram = errs.Define("program-not-elf",
		"cannot run {path}: it is neither an ELF program nor a script that begins with #!",
		"The file begins with bytes that no Linux program begins with.",
		"Name a compiled program, or the interpreter that runs the file.")

	errTruncated = errs.Define("program-truncated",
		"cannot run {path}: the file is truncated: its {part} ends at byte {end} and the file at byte {size}",
		"The file is shorter than its own headers say.",
		"Copy, download or build it again.")

	err32Bit = errs.Define("program-32-bit",
		"cannot run {path}: it is a 32-bit program, and heddle runs 64-bit x86-64 programs",
		"The program was built for i386 or x32.",
		"Build it for x86-64, or install its amd64 package.")

	errMachine = errs.Define("program-other-machine",
		"cannot run {path}: it is built for {machine}, and heddle runs x86-64 programs",
		"The program was built for another processor.",
		"Build it for x86-64, or install its amd64 package.")

	errNotExecutable = errs.Define("program-not-executable",
		"cannot run {path}: it is {kind}, not a program",
		"The file is ELF, but an object file or a core dump.",
		"Link it, or name the program.")

	errDamaged = errs.Define("program-damaged",
		"cannot run {path}: its ELF headers are damaged: {what}",
		"The headers contradict themselves or ask for what cannot be.",
		"Copy, download or build the file again.")

	errInterpreter = errs.Define("interpreter-cannot-be-opened",
		"cannot run {path}: its interpreter {interpreter} cannot be opened",
		"The dynamic linker of the program, or the interpreter that the script's first line names, is not visible "+
			"to the guest or may not be executed.",
		"Install it, or show its folder to the guest with --mount.")

	errBadInterpreter = errs.Define("interpreter-bad",
		"cannot run {path}: its interpreter {interpreter} is no dynamic linker that can be used",
		"The program names a dynamic linker that is damaged or of another kind.",
		"Install the dynamic linker again, or build the program again.")

	errScript = errs.Define("script-without-interpreter",
		"cannot run {path}: its first line begins with #! but names no interpreter",
		"The name after #! is missing, or longer than the kernel reads.",
		"Correct the first line.")

	errScriptCloses = errs.Define("script-closes",
		"cannot run {path}: its descriptor is closed before the interpreter of the script opens it",
		"The script was executed by a descriptor with the flag close-on-exec.",
		"Execute it by a descriptor without the flag, or by its name.")

	errScriptDepth = errs.Define("scripts-nested",
		"cannot run {path}: scripts are the interpreters of scripts too often",
		"More than 5 scripts name one another as interpreters.",
		"Name a compiled program as interpreter.")

	errArguments = errs.Define("arguments-too-long",
		"cannot run {path}: its arguments and environment do not fit: {what}",
		"All strings together may take a quarter of the stack's limit, one at most 128 KiB, as in Linux.",
		"Pass less, or raise the limit on the stack's size.")

	errLevel = errs.Define("program-needs-newer-processor",
		"cannot run {path}: it needs a processor of level x86-64-v3, and the emulated one is of level {level}; run it with --cpu x86-64-v3",
		"The program's GNU property note asks for instructions such as AVX2, which the emulated processor does not have.",
		"Run it with --cpu x86-64-v3, for which the host's processor must be of that level too, or build it with -march=x86-64-v2.")

	errTopLevel = errs.Define("program-needs-avx512",
		"cannot run {path}: it needs a processor of level x86-64-v4, and the emulated one is of level {level}; AVX-512 is not provided, build it with -march=x86-64-v3",
		"The program's GNU property note asks for AVX-512, which no emulated processor has.",
		"Build it with -march=x86-64-v3 and run it with --cpu x86-64-v3, or build it with -march=x86-64-v2.")

	errNoRoom = errs.Define("program-does-not-fit",
		"cannot run {path}: it cannot be mapped into memory",
		"The program's segments are larger than the guest's memory or overlap the stack.",
		"Give the guest more memory with --max-memory.")
)
