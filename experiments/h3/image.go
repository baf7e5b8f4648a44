package h3

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
)

var errNoCreate = errs.Define("reproduce-without-create",
	"the program in {file} does not create its second thread with pthread_create, or has no symbol of that function",
	"The function is not among the symbols of the program and its libraries, or the program makes threads in another way.",
	"Use a program whose symbols strip has not removed, and that creates threads with pthread_create.")

// startPoint is the program where its first thread is about to make the second one, or at a
// checkpoint.
type startPoint struct {
	image        *symtrace.Image
	thread       arch.ThreadID
	instructions uint64
	decisions    uint64 // of the recorded run before it, if it is a checkpoint
	halt         *PausedRun
	names        *symbolNames
}

func (s *startPoint) closeMachine() { s.halt.Close() }

// window is how many instructions pthread_create takes up to the call of the kernel
// at most.
const window = 8192

// singleThreaded is the variable by which glibc leaves atomic operations out.
const singleThreaded = "__libc_single_threaded"

// newStartPoint runs the program up to its second thread, which is the same under every
// schedule.
func newStartPoint(ctx context.Context, r *machine.Replay, file, root string) (*startPoint, error) {
	clone, err := runToFirstClone(ctx, r)
	if err != nil {
		return nil, err
	}
	defer clone.Close()
	n := readSymbolNames(clone.Mappings(), root)
	image := &symtrace.Image{Functions: n.functions, Objects: n.objects, NewThread: newThread(clone)}
	for _, v := range n.variables {
		if v.name == singleThreaded {
			image.ChangedByCreate = append(image.ChangedByCreate, clone.piece(v.Addr, v.Size))
		}
	}
	from := clone.Instructions - min(clone.Instructions, window)
	halt, err := runToInstruction(ctx, r, clone.Thread(), from, window, func(pc arch.Addr) bool {
		f, ok := n.functions[uint64(pc)]
		return ok && f.Role == symtrace.Synchronize && f.Op == event.OpCreate
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errNoThreads):
		return nil, errNoCreate.New(file)
	case err != nil:
		return nil, err
	}
	concolicrun.SetState(&image.State, &halt.Regs, &halt.FP)
	fillFromMachine(image, halt)
	return &startPoint{image: image, thread: halt.Thread(), instructions: halt.Instructions, halt: halt, names: n}, nil
}

// newThread is the memory of a thread that is about to be made.
func newThread(clone *PausedRun) symtrace.NewThread {
	const below, above = 4096, 4096
	n := symtrace.NewThread{Pointer: uint64(clone.TLS()), Stack: uint64(clone.Stack())}
	n.Block = clone.piece((n.Pointer-below)&^7, below+above)
	if at := uint64(clone.ThreadID()); at > n.Pointer {
		n.ID = at - n.Pointer
	}
	// glibc, sysdeps/x86_64/nptl/tls.h: the second word at the thread pointer points to the vector's
	// entry 0. An entry has two words; the first word of the entry before is the number of the last.
	const vector, entry, mostModules = 8, 16, 1 << 12
	if at := clone.word(n.Pointer + vector); at != 0 {
		if last := clone.word(at - entry); last <= mostModules {
			n.Modules = clone.piece(at-entry, entry*(last+2))
		}
	}
	return n
}

// piece is the content of memory at an address.
func (h *PausedRun) piece(at, size uint64) symtrace.Piece {
	p := symtrace.Piece{Addr: at, Content: make([]byte, size)}
	h.Peek(arch.Addr(at), p.Content)
	return p
}

func (h *PausedRun) word(at uint64) uint64 { return binary.LittleEndian.Uint64(h.piece(at, 8).Content) }

// fillFromMachine fills an image from a halted machine.
func fillFromMachine(image *symtrace.Image, halt *PausedRun) {
	image.Peek = func(addr uint64, b []byte) int { return halt.Peek(arch.Addr(addr), b) }
	image.CPUID, image.Clock, image.Affinity = halt.CPUID, halt.task.ClockNS, halt.task.Affinity()
	image.File = func(name string) (*symtrace.File, unix.Errno) {
		content, stat, errno := halt.File(name)
		return &symtrace.File{Content: content, Stat: stat}, errno
	}
	for _, m := range halt.Mappings() {
		image.Mapped = append(image.Mapped, symtrace.Range{Start: uint64(m.Start), End: uint64(m.End)})
	}
}

// symbolNames are the names of functions and variables in the files in memory.
type symbolNames struct {
	functions map[uint64]symtrace.Function
	objects   []symtrace.Object
	variables []variable
	root      string
	images    []mappedFile
}

// mappedFile is a part of a file in memory. The file's first byte is at base.
type mappedFile struct {
	path             string
	start, end, base uint64
}

type variable struct {
	symtrace.Object
	name string
}

func readSymbolNames(mappings []mm.VMA, root string) *symbolNames {
	n := &symbolNames{functions: map[uint64]symtrace.Function{}, root: root}
	bases := map[string]uint64{}
	for i := range mappings {
		m := &mappings[i]
		if m.File == nil {
			continue
		}
		path, _, _ := m.File.MapName()
		if _, known := bases[path]; !known && m.Offset == 0 {
			bases[path] = uint64(m.Start)
			n.readFile(filepath.Join(root, path), uint64(m.Start))
		}
		n.images = append(n.images, mappedFile{path, uint64(m.Start), uint64(m.End), bases[path]})
	}
	byAddr := func(a, b symtrace.Object) int { return cmp.Compare(a.Addr, b.Addr) }
	slices.SortFunc(n.objects, byAddr)
	n.objects = slices.CompactFunc(n.objects, func(a, b symtrace.Object) bool { return a.Addr == b.Addr })
	slices.SortFunc(n.variables, func(a, b variable) int { return byAddr(a.Object, b.Object) })
	return n
}

// biasOf is the difference between addresses in memory and those in a file whose first byte is at
// an address.
func biasOf(f *debuginfo.File, at uint64) uint64 { return at - f.FirstAddress()&^(arch.PageSize-1) }

// imageAt returns the mapped file at an address, or nil.
func (n *symbolNames) imageAt(addr uint64) *mappedFile {
	i := slices.IndexFunc(n.images, func(m mappedFile) bool { return m.start <= addr && addr < m.end })
	if i < 0 {
		return nil
	}
	return &n.images[i]
}

// describePlace names the function and the source line at an address, or its file, as far as they
// are known.
func (n *symbolNames) describePlace(addr uint64) string {
	text := fmt.Sprintf("%#x", addr)
	m := n.imageAt(addr)
	if m == nil {
		return text
	}
	name := path.Base(m.path)
	if f, err := debuginfo.Open(filepath.Join(n.root, m.path)); err == nil {
		at := addr - biasOf(f, m.base)
		if function, _ := f.FunctionAt(at); function != nil {
			text = function.Name()
		}
		if line, ok := f.SourceLine(at); ok {
			name = line
		}
	}
	return text + " (" + name + ")"
}

var addressPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("0x[0-9a-f]+") })

// describeAddresses is a text with places of the program instead of their addresses.
func (n *symbolNames) describeAddresses(text string) string {
	return addressPattern().ReplaceAllStringFunc(text, func(number string) string {
		addr, err := strconv.ParseUint(number, 0, 64)
		if err != nil || n.imageAt(addr) == nil {
			return number
		}
		return n.describePlace(addr)
	})
}

// readFile takes the symbols of a file whose first bytes are at an address. A file that
// the host does not have has none.
func (n *symbolNames) readFile(path string, at uint64) {
	host, err := os.Open(path)
	if err != nil {
		return
	}
	defer host.Close()
	e, err := debuginfo.ParseELF(host)
	if err != nil {
		return
	}
	f := debuginfo.NewFile(e)
	bias := biasOf(f, at)
	symbols := f.Symbols()
	for i := range symbols {
		s := &symbols[i]
		switch s.Kind {
		case debuginfo.Function:
			n.addFunction(string(s.RawName()), bias+s.Addr)
		case debuginfo.Variable:
			if s.Size > 0 {
				o := symtrace.Object{Addr: bias + s.Addr, Size: s.Size}
				n.objects, n.variables = append(n.objects, o), append(n.variables, variable{o, string(s.RawName())})
			}
		}
	}
}

// addFunction notes a function that is not followed.
func (n *symbolNames) addFunction(name string, at uint64) {
	f, ok := library[name]
	if op, known := syncops.Operation(name); known && !followedOps[op] {
		f, ok = symtrace.Function{Role: symtrace.Synchronize, Op: op}, true
		if op == event.OpPthreadExit {
			f.Role = symtrace.StopThread
		}
	}
	if !ok {
		return
	}
	f.Name = name
	if old, known := n.functions[at]; known && (old.Role != symtrace.Synchronize || f.Role != symtrace.Synchronize || old.Op == event.OpSpinUnlock) {
		return
	}
	n.functions[at] = f
}

// followedOps are operations that are followed as the code that they are.
var followedOps = map[event.SyncOp]bool{
	event.OpOnce: true, event.OpC11CallOnce: true, event.OpTestCancel: true, event.OpSemOpen: true, event.OpSemClose: true,
	event.OpC11ThrdCreate: true, event.OpC11ThrdJoin: true, event.OpC11ThrdExit: true, event.OpMutexConsistent: true,
	event.OpCancel: true, event.OpKeyCreate: true, event.OpKeyDelete: true, event.OpC11TssCreate: true, event.OpC11TssDelete: true,
}

// library are functions of the C library that are not followed: they keep state of
// their own under locks of their own.
var library = func() map[string]symtrace.Function {
	all := map[string]symtrace.Function{
		"malloc": {Role: symtrace.Allocate}, "__libc_malloc": {Role: symtrace.Allocate},
		"calloc": {Role: symtrace.Calloc}, "__libc_calloc": {Role: symtrace.Calloc},
		"realloc": {Role: symtrace.Resize}, "__libc_realloc": {Role: symtrace.Resize},
		"strdup": {Role: symtrace.Duplicate}, "__strdup": {Role: symtrace.Duplicate},
		"__assert_fail": {Role: symtrace.Fail},
		// Cancelling threads, nptl of glibc.
		"__pthread_register_cancel": {Role: symtrace.Register}, "__pthread_unregister_cancel": {Role: symtrace.Unregister},
		"__pthread_unwind": {Role: symtrace.Unwind}, "__pthread_unwind_next": {Role: symtrace.Unwind},
		"sigcancel_handler": {Role: symtrace.Cancel},
	}
	for _, name := range []string{"abort", "__stack_chk_fail"} {
		all[name] = symtrace.Function{Role: symtrace.Stop}
	}
	for _, name := range []string{"exit", "_exit", "_Exit", "quick_exit"} {
		all[name] = symtrace.Function{Role: symtrace.Stop, Value: 1} // a status
	}
	for name, format := range map[string]uint64{"printf": 1, "_IO_printf": 1, "__printf_chk": 2} {
		all[name] = symtrace.Function{Role: symtrace.Print, Value: format}
	}
	for _, name := range []string{"free", "__libc_free", "cfree"} {
		all[name] = symtrace.Function{Role: symtrace.Free}
	}
	for _, name := range []string{"fwrite", "_IO_fwrite"} {
		all[name] = symtrace.Function{Role: symtrace.Argument, Value: 3, Stream: 4} // how many were written
	}
	for name, stream := range map[string]int{
		"puts": 0, "_IO_puts": 0, "putchar": 0, "perror": 0,
		"usleep": 0, "nanosleep": 0, "sched_yield": 0, "__sched_yield": 0, "sleep": 0,
		"fprintf": 1, "__fprintf_chk": 1, "vfprintf": 1, "__vfprintf_internal": 1, "fflush": 1, "_IO_fflush": 1,
		"putc": 2, "fputc": 2, "fputs": 2, "_IO_fputs": 2,
	} {
		all[name] = symtrace.Function{Role: symtrace.Constant, Stream: stream}
	}
	return all
}()
