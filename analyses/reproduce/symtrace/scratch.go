package symtrace

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A file without a name (O_TMPFILE) is memory that no program has: what threads write
// there is shared as variables are. Its length is that of all that is ever written.
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

func (w *walker) scratchCall(number uint64, args *[6]uint64) error {
	file, at, size, offset := args[0], args[1], args[2], args[3]
	switch {
	case number == unix.SYS_FSTAT:
		stat := make([]byte, statSize)
		binary.LittleEndian.PutUint32(stat[statMode:], unix.S_IFREG|0o600)
		binary.LittleEndian.PutUint64(stat[statBlockSize:], pageSize)
		w.fill(at, stat)
		return w.over(0)
	case offset > maxScratch || size > maxScratch-offset:
	case number == unix.SYS_PWRITE64:
		w.lengths = append(w.lengths, length{file, offset + size})
		w.b.lengths[file] = max(w.b.lengths[file], offset+size)
		return w.copies(at, scratchAddr(file, offset), size)
	case number == unix.SYS_PREAD64:
		w.outcomes++ // less may have been written
		there := max(w.b.lengths[file], offset) - offset
		return w.copies(scratchAddr(file, offset), at, min(size, there))
	}
	return fmt.Errorf("system call %d is about a file that a thread writes", number)
}

// length is how long a file is made.
type length struct{ file, to uint64 }

// copies has the kernel copy memory, and ends the call.
func (w *walker) copies(from, to, size uint64) error {
	for i := uint64(0); i < size; {
		n := min(granule-(from+i)%granule, granule-(to+i)%granule, size-i)
		if _, array := w.b.inArray(from + i); array {
			return fmt.Errorf("the kernel reads an array of which a thread does not know which element it accesses")
		}
		if _, array := w.b.inArray(to + i); array {
			return fmt.Errorf("the kernel writes an array of which a thread does not know which element it accesses")
		}
		w.kernelStore(to+i, w.kernelLoad(from+i, int(n)))
		i += n
	}
	return w.over(size)
}

// kernelLoad is what the kernel reads for a thread.
func (w *walker) kernelLoad(addr uint64, size int) *symbolic.Expr {
	w.touched(addr, size, false)
	have := w.settled(w.mem.load(w.b.pool, addr, size))
	if !w.b.sharing.shared(addr, size) || have.IsConst() && w.knows(addr, size) {
		return have
	}
	w.fence()
	s := w.kernelSymbol(addr, size)
	if have.IsConst() {
		w.b.seen[s.Name] = have.Value
	}
	w.add(model.Event{Kind: model.Read, Addr: addr, Size: size, Symbol: s}, false)
	return s
}

// kernelStore writes for a thread.
func (w *walker) kernelStore(addr uint64, e *symbolic.Expr) {
	size := e.Bits / 8
	w.touched(addr, size, true)
	w.mem.store(addr, e)
	if w.b.sharing.shared(addr, size) {
		w.fence()
		w.add(model.Event{Kind: model.Write, Addr: addr, Size: size, Value: e}, false)
	}
}

// kernelSymbol is the symbol of what the next event reads.
func (w *walker) kernelSymbol(addr uint64, size int) *symbolic.Expr {
	s := w.symbol(8 * size)
	w.b.bits[s.Name], w.b.places[s.Name] = s.Bits, location{addr, size}
	delete(w.b.guesses, s.Name)
	delete(w.b.seen, s.Name)
	return s
}

// fence has the kernel's accesses behind what its thread has written.
func (w *walker) fence() {
	if w.b.options.Weak {
		w.add(model.Event{Kind: model.Fence}, false)
	}
}
