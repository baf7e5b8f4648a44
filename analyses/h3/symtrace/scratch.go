package symtrace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// A file without a name (O_TMPFILE) is memory outside of any program: threads share its content as
// they share variables. Its length is that of all writes together.
const scratchFiles = kernelObjects + 1<<40

// maxScratch is how long such a file may be.
const maxScratch = 1 << 30

func scratchAddr(number, offset uint64) uint64 { return scratchFiles + number*maxScratch + offset }

// Fields of struct stat (x86-64).
const (
	statSize      = 144
	statMode      = 24
	statBlockSize = 56
)

func (w *threadExec) scratchCall(number uint64, args *[6]uint64) error {
	file, at, size, offset := args[0], args[1], args[2], args[3]
	switch {
	case number == unix.SYS_FSTAT:
		stat := make([]byte, statSize)
		binary.LittleEndian.PutUint32(stat[statMode:], unix.S_IFREG|0o600)
		binary.LittleEndian.PutUint64(stat[statBlockSize:], symmem.PageSize)
		w.kernelWrite(at, stat)
		return w.completeSyscall(0)
	case offset > maxScratch || size > maxScratch-offset:
	case number == unix.SYS_PWRITE64:
		w.fileLengths = append(w.fileLengths, fileLength{file, offset + size})
		w.pass.lengths[file] = max(w.pass.lengths[file], offset+size)
		return w.copyMemory(at, scratchAddr(file, offset), size)
	case number == unix.SYS_PREAD64:
		w.otherOutcomes++ // less may have been written
		there := max(w.pass.lengths[file], offset) - offset
		return w.copyMemory(scratchAddr(file, offset), at, min(size, there))
	}
	return fmt.Errorf("%s is called on a temporary file, which is not supported", linux.NameOrNumber(number))
}

// copyMemory has the kernel copy memory, and ends the call.
func (w *threadExec) copyMemory(from, to, size uint64) error {
	for i := uint64(0); i < size; {
		n := min(symmem.Granule-(from+i)%symmem.Granule, symmem.Granule-(to+i)%symmem.Granule, size-i)
		if _, array := w.pass.arrayAt(from + i); array {
			return errors.New("a system call reads an array in which a thread accesses an element that depends on the schedule")
		}
		if _, array := w.pass.arrayAt(to + i); array {
			return errors.New("a system call writes an array in which a thread accesses an element that depends on the schedule")
		}
		w.kernelStore(to+i, w.kernelLoad(from+i, int(n)))
		i += n
	}
	return w.completeSyscall(size)
}

// kernelLoad reads memory on behalf of a thread in a system call.
func (w *threadExec) kernelLoad(addr uint64, size int) *symbolic.Expr {
	w.noteAccess(addr, size, false)
	have := w.substituteFixed(w.memory.Load(w.pass.pool, addr, size))
	if !w.pass.sharing.IsShared(addr, size) || have.IsConst() && w.hasOwnValue(addr, size) {
		return have
	}
	w.kernelFence()
	s := w.kernelSymbol(addr, size)
	if have.IsConst() {
		w.pass.ownValues[s.Name] = have.Value
	}
	w.addEvent(model.Event{Kind: model.Read, Addr: addr, Size: size, Symbol: s}, false)
	return s
}

// kernelStore writes for a thread.
func (w *threadExec) kernelStore(addr uint64, e *symbolic.Expr) {
	size := e.Bits / 8
	w.noteAccess(addr, size, true)
	w.memory.Store(addr, e)
	if w.pass.sharing.IsShared(addr, size) {
		w.kernelFence()
		w.addEvent(model.Event{Kind: model.Write, Addr: addr, Size: size, Value: e}, false)
	}
}

// kernelSymbol makes the symbol of the value that the next event reads.
func (w *threadExec) kernelSymbol(addr uint64, size int) *symbolic.Expr {
	s := w.nextSymbol(8 * size)
	w.pass.symbolBits[s.Name], w.pass.symbolPlaces[s.Name] = s.Bits, symbolPlace{addr, size}
	delete(w.pass.guesses, s.Name)
	delete(w.pass.ownValues, s.Name)
	return s
}

// kernelFence orders the kernel's accesses after the thread's own writes.
func (w *threadExec) kernelFence() {
	if w.pass.options.WeakMemory {
		w.addEvent(model.Event{Kind: model.Fence}, false)
	}
}
