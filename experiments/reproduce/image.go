package reproduce

import (
	"cmp"
	"context"
	"debug/elf"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
)

var errNoCreate = errs.Define("reproduce-without-create",
	"the program in {file} does not make its second thread by pthread_create",
	"The function is not among the symbols of the program and its libraries, or the program makes threads in another way.",
	"Give the program its symbols back: strip removes them.")

// start is the program where its first thread is about to make the second one, or at a
// checkpoint.
type start struct {
	image        *symtrace.Image
	thread       event.ThreadID
	instructions uint64
	decisions    uint64 // of the recorded run before it, if it is a checkpoint
	halt         *heddle.Halt
	names        *names
}

func (s *start) close() { s.halt.Close() }

// window is how many instructions pthread_create takes up to the call of the kernel
// at most.
const window = 8192

// singleThreaded is the variable by which glibc leaves atomic operations out.
const singleThreaded = "__libc_single_threaded"

// newStart runs the program up to its second thread, which is the same under every
// schedule.
func newStart(ctx context.Context, r *heddle.Replay, file, root string) (*start, error) {
	clone, err := r.FirstClone(ctx)
	if err != nil {
		return nil, err
	}
	defer clone.Close()
	n := readNames(clone.Mappings(), root)
	image := &symtrace.Image{Functions: n.functions, Objects: n.objects, ThreadPointer: uint64(clone.TLS())}
	const below, above = 4096, 4096
	image.BlockStart = (image.ThreadPointer - below) &^ 7
	image.ThreadBlock = make([]byte, below+above)
	clone.Peek(event.Addr(image.BlockStart), image.ThreadBlock)
	image.Stack = uint64(clone.Stack())
	if at := uint64(clone.ThreadID()); at > image.ThreadPointer {
		image.ThreadID = at - image.ThreadPointer
	}
	for _, v := range n.variables {
		if v.name == singleThreaded {
			c := symtrace.Piece{Addr: v.Addr, Content: make([]byte, v.Size)}
			clone.Peek(event.Addr(c.Addr), c.Content)
			image.Changed = append(image.Changed, c)
		}
	}
	behind := clone.Instructions - min(clone.Instructions, window)
	halt, err := r.HaltAt(ctx, clone.Thread(), behind, window, func(pc event.Addr) bool {
		f, ok := n.functions[uint64(pc)]
		return ok && f.Role == symtrace.Synchronize && f.Op == event.OpCreate
	})
	if err != nil {
		return nil, errNoCreate.Wrap(err, file)
	}
	follow.SetState(&image.State, &halt.Regs, &halt.FP)
	shows(image, halt)
	return &start{image: image, thread: halt.Thread(), instructions: halt.Instructions, halt: halt, names: n}, nil
}

// shows gives an image what a machine that stands still has.
func shows(image *symtrace.Image, halt *heddle.Halt) {
	image.Peek = func(addr uint64, b []byte) int { return halt.Peek(event.Addr(addr), b) }
	image.CPUID = halt.CPUID
	image.File = func(name string) (*symtrace.File, unix.Errno) {
		content, stat, errno := halt.File(name)
		return &symtrace.File{Content: content, Stat: stat}, errno
	}
	for _, m := range halt.Mappings() {
		image.Mapped = append(image.Mapped, symtrace.Range{Start: uint64(m.Start), End: uint64(m.End)})
	}
}

// names are what the files in memory call their functions and variables.
type names struct {
	functions map[uint64]symtrace.Function
	objects   []symtrace.Object
	variables []variable
	files     []mapped
}

type variable struct {
	symtrace.Object
	name string
}

// mapped is a file in memory.
type mapped struct {
	path       string
	bias       uint64
	start, end uint64
}

func readNames(mappings []mm.VMA, root string) *names {
	n := &names{functions: map[uint64]symtrace.Function{}}
	done := map[string]bool{}
	for i := range mappings {
		m := &mappings[i]
		if m.File == nil || m.Offset != 0 {
			continue
		}
		path, _, _ := m.File.MapName()
		if !done[path] {
			done[path] = true
			n.read(filepath.Join(root, path), uint64(m.Start))
		}
	}
	byAddr := func(a, b symtrace.Object) int { return cmp.Compare(a.Addr, b.Addr) }
	slices.SortFunc(n.objects, byAddr)
	n.objects = slices.CompactFunc(n.objects, func(a, b symtrace.Object) bool { return a.Addr == b.Addr })
	slices.SortFunc(n.variables, func(a, b variable) int { return byAddr(a.Object, b.Object) })
	return n
}

// read takes the symbols of a file whose first bytes are at an address. A file that
// the host does not have has none.
func (n *names) read(path string, at uint64) {
	f, err := elf.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	bias := uint64(0)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			bias = at - (p.Vaddr &^ (emu.PageSize - 1))
			break
		}
	}
	n.files = append(n.files, mapped{path: path, bias: bias, start: at})
	symbols, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(symbols, dynamic...) {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_FUNC:
			n.function(s.Name, bias+s.Value)
		case elf.STT_OBJECT:
			if s.Size > 0 {
				o := symtrace.Object{Addr: bias + s.Value, Size: s.Size}
				n.objects, n.variables = append(n.objects, o), append(n.variables, variable{o, s.Name})
			}
		}
	}
}

// function notes a function that is not followed.
func (n *names) function(name string, at uint64) {
	f, ok := library[name]
	if op, known := syncops.Operation(name); known && followedOps[op] == false {
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
	event.OpCancel: true,
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
