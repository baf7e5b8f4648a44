package loader

import (
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// File is an executable file, open for reading.
type File interface {
	// Size is the number of bytes in the file.
	Size() int64
	// ReadAt fills p from off on, and returns fewer bytes only at the end.
	ReadAt(p []byte, off int64) (int, unix.Errno)
	// Object is the memory object that mappings of the file map.
	Object() *mm.Object
	// MapFile is the file that mappings refer to. It must remain valid after Close.
	MapFile() mm.File
	// Close is called when the loader does not need the file any more.
	Close()
}

// Opener finds the files that execve needs: the program, interpreters of
// scripts, the dynamic linker.
type Opener interface {
	// OpenExec opens a file to execute it, with the errors of execve for its path, and
	// EACCES for a file that may not be executed. EISDIR stands for a directory, which
	// execve reports as EACCES.
	OpenExec(path string) (File, unix.Errno)
}

// Options are the parameters of the initial stack besides arguments, and of the layout.
type Options struct {
	// Identify returns the user that a program runs as; nil: all ids are 0.
	Identify func(program File) Identity
	// Level is the level of the processor. A program that needs more is refused.
	Level          arch.Level
	HWCap          uint32   // AT_HWCAP: CPUID leaf 1, EDX
	MinSignalStack uint64   // AT_MINSIGSTKSZ
	Random         [16]byte // AT_RANDOM
	// Randomize derives the layout from LayoutSeed; otherwise it is that of Linux
	// without randomisation.
	Randomize  bool
	LayoutSeed uint64
	// BottomUp places mappings upwards from a third of the address space, as Linux
	// does for ADDR_COMPAT_LAYOUT.
	BottomUp bool
	// PathCloses says that the path is one of a descriptor that execve closes: the
	// interpreter of a script could not open it.
	PathCloses bool
}

// Identity is the user that a program runs as.
type Identity struct {
	UID, EUID, GID, EGID uint32
	Secure               bool // AT_SECURE: it runs with more rights than its caller
}

// Object is an ELF file in memory.
type Object struct {
	Path string    // as it was opened
	Bias arch.Addr // added to the addresses in the file
}

// Image is a program ready to start.
type Image struct {
	Entry        arch.Addr // where execution begins: in the dynamic linker if there is one
	StackPointer arch.Addr // argc lies here
	Program      Object    // the ELF program; for a script, its interpreter
	Linker       Object    // the dynamic linker; no path if the program has none
	Args         []string  // with the arguments that scripts insert
}

// maxScripts is how often an interpreter may be a script itself.
const maxScripts = 5

// Load maps the program at path into as, which must be new, and lays out its stack. An
// error is an *Error; the content of as is undefined then.
func Load(as *mm.AddressSpace, files Opener, path string, args, env []string, o Options) (Image, error) {
	if len(args) == 0 {
		args = []string{""}
	}
	l := &loading{as: as, files: files, path: path, pathCloses: o.PathCloses, level: o.Level, random: layoutRandom(o)}
	as.Layout.BottomUp = o.BottomUp
	l.chooseLayout()
	defer l.closeFiles()
	program, args, err := l.findProgram(args)
	if err != nil {
		return Image{}, err
	}
	return l.startProgram(program, args, env, o)
}

// loading is one call of Load.
type loading struct {
	as     *mm.AddressSpace
	files  Opener
	path   string // as given: of the script if it is one
	opened []File
	random *rand.Rand // nil: the fixed layout

	pathCloses bool       // Options.PathCloses
	level      arch.Level // Options.Level
}

func (l *loading) closeFiles() {
	for _, f := range l.opened {
		f.Close()
	}
}

// openFile opens a file that is closed at the end.
func (l *loading) openFile(path string) (File, unix.Errno) {
	f, errno := l.files.OpenExec(path)
	if errno == 0 {
		l.opened = append(l.opened, f)
	}
	return f, errno
}

// program is the ELF file to run.
type program struct {
	path string
	file File
	*header
}

// findProgram opens the program, or if that is a script its interpreter, and
// returns it with its arguments.
func (l *loading) findProgram(args []string) (*program, []string, error) {
	path := l.path
	for depth := 0; ; depth++ {
		f, errno := l.openFile(path)
		if errno != 0 {
			return nil, nil, l.cannotOpen(path, errno)
		}
		if depth > maxScripts {
			return nil, nil, newError(unix.ELOOP, errScriptDepth.New(l.path))
		}
		start, err := readStart(path, f)
		if err != nil {
			return nil, nil, err
		}
		if !isScript(start) {
			h, err := parseHeader(path, f, start)
			if err != nil {
				return nil, nil, err
			}
			return &program{path, f, h}, args, nil
		}
		interpreter, argument, errno := parseScript(start)
		if errno != 0 {
			return nil, nil, newError(errno, errScript.New(path))
		}
		if l.pathCloses {
			return nil, nil, newError(unix.ENOENT, errScriptCloses.New(path))
		}
		args = scriptArgs(interpreter, argument, path, args)
		path = interpreter
	}
}

// cannotOpen reports that a file could not be opened: the program itself or an
// interpreter of scripts.
func (l *loading) cannotOpen(path string, errno unix.Errno) error {
	if path != l.path {
		if errno == unix.EISDIR {
			errno = unix.EACCES
		}
		return newError(errno, errInterpreter.Wrap(errno, l.path, path))
	}
	if errno == unix.EISDIR {
		return newError(unix.EACCES, errDirectory.New(path))
	}
	return newError(errno, errOpen.Wrap(errno, path))
}

// startProgram maps program and linker and lays out the stack.
func (l *loading) startProgram(p *program, args, env []string, o Options) (Image, error) {
	if err := checkLevel(p, l.level); err != nil {
		return Image{}, err
	}
	linker, err := l.findLinker(p)
	if err != nil {
		return Image{}, err
	}
	s, err := l.newStack(p, args, env)
	if err != nil {
		return Image{}, err
	}
	bias, err := l.mapProgram(p)
	if err != nil {
		return Image{}, err
	}
	image := Image{Entry: bias + arch.Addr(p.entry), Program: Object{p.path, bias}, Args: args}
	if linker != nil {
		base, err := l.mapLinker(linker)
		if err != nil {
			return Image{}, err
		}
		image.Linker = Object{linker.path, base}
		image.Entry = base + arch.Addr(linker.entry)
	}
	if image.StackPointer, err = s.finish(p, &image, o); err != nil {
		return Image{}, err
	}
	return image, nil
}

// findLinker opens the dynamic linker of p, if it has one.
func (l *loading) findLinker(p *program) (*program, error) {
	if p.interpreter == "" {
		return nil, nil
	}
	f, errno := l.openFile(p.interpreter)
	if errno != 0 {
		if errno == unix.EISDIR {
			errno = unix.EACCES
		}
		return nil, newError(errno, errInterpreter.Wrap(errno, p.path, p.interpreter))
	}
	start, err := readStart(p.interpreter, f)
	if err == nil {
		var h *header
		if h, err = parseHeader(p.interpreter, f, start); err == nil {
			linker := &program{p.interpreter, f, h}
			if err = checkLevel(linker, l.level); err == nil {
				return linker, nil
			}
		}
	}
	return nil, newError(unix.ELIBBAD, errBadInterpreter.Wrap(err, p.path, p.interpreter))
}

// Addresses of the fixed layout, and by how much Linux randomises (x86-64).
const (
	pieBase   arch.Addr = 0x555555554000
	stackTop            = mm.TaskSize
	minGap    uint64    = 128 << 20 // between stack top and mappings
	maxGap    uint64    = uint64(mm.TaskSize) / 6 * 5
	stackRoom uint64    = 16 << 30 // by which the stack's top may move
	stackSlop uint64    = 8192     // by which the first stack pointer may move
	brkRoom   uint64    = 32 << 20 // by which the heap may move
	mapRoom   uint64    = 1 << 28  // pages by which mappings and programs may move
	stackGap  uint64    = 1 << 20  // kept free below a stack
)

// layoutRandom is the stream of layout decisions, or nil.
func layoutRandom(o Options) *rand.Rand {
	if !o.Randomize {
		return nil
	}
	return rand.New(rand.NewPCG(o.LayoutSeed, 0x6c61796f7574)) // "layout"
}

// randomOffset returns a random offset of less than limit pages, or 0 in the fixed
// layout.
func (l *loading) randomOffset(limit uint64) arch.Addr {
	if l.random == nil {
		return 0
	}
	return arch.Addr(l.random.Uint64N(limit/arch.PageSize) * arch.PageSize)
}

// chooseLayout chooses the address of mappings (mmap_base of Linux).
func (l *loading) chooseLayout() {
	gap := l.as.Limits.Stack
	pad := stackGap
	if l.random != nil {
		pad += stackRoom
	}
	if gap+pad > gap {
		gap += pad
	}
	gap = min(max(gap, minGap), maxGap) &^ (arch.PageSize - 1)
	l.as.Layout.MmapBase = mm.TaskSize - arch.Addr(gap) - l.randomOffset(mapRoom*arch.PageSize)
}
