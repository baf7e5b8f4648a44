package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// functions are those of the files of the traces, in the order of their numbers: number 2 begins
// at 0x1200 of its file, and has line 200 there, line 201 at 0x1201, and so on. Those of libc.so.6
// have no lines.
var functions = []struct{ name, file string }{
	1: {"main", "prog"},
	2: {"add", "prog"},
	3: {"work", "prog"},
	4: {"_ZN4shop7Counter3addEi", "prog"},
	5: {"_ZN4shop4bump17h0123456789abcdefE", "prog"},
	6: {"_RNvNtCs1234_7mycrate3foo3bar", "prog"},
	7: {"memcpy", "libc.so.6"},
	8: {"_int_free", "libc.so.6"},
	9: {"secret", "stripped.so"},
}

// variables are those of prog, of sixteen bytes each.
var variables = []string{"x", "y", "flag", "m", "n", "rw", "cond", "bar", "sem", "control", "_ZN4shop5totalE"}

// images are the files that a run has in memory, by their addresses there. There is no gone.so.
var images = []struct {
	file string
	base uint64
}{{"prog", 0x400000}, {"libc.so.6", 0x500000}, {"stripped.so", 0x600000}, {"gone.so", 0x700000}}

// Where the code and the variables of a file are, in the file as linked; where the heap is, and the
// stacks.
const (
	firstCode, firstData = 0x1000, 0x3000
	heapBase, stackBase  = 0x800000, 0x200000
	stackSize, blockSize = 0x10000, 0x1000
	variableSize         = 16
	callSize             = 5 // bytes of a call instruction
)

// linkImages makes the files in a folder.
func linkImages(t *testing.T, folder string) {
	t.Helper()
	for _, image := range images[:3] {
		var source strings.Builder
		fmt.Fprintln(&source, "\t.text")
		for n, f := range functions {
			if f.file != image.file {
				continue
			}
			fmt.Fprintf(&source, "\t.org %#x\n\t.type %[2]s, @function\n%[2]s:\n", 0x100*n, f.name)
			for line := range 10 {
				fmt.Fprintf(&source, "# %d \"/src/cases.c\"\n\tnop\n", 100*n+line)
			}
			fmt.Fprintf(&source, "\t.size %[1]s, .-%[1]s\n", f.name)
		}
		fmt.Fprintln(&source, "\t.data")
		if image.file == "prog" {
			for _, v := range variables {
				fmt.Fprintf(&source, "\t.type %[1]s, @object\n%[1]s:\t.zero %[2]d\n\t.size %[1]s, %[2]d\n", v, variableSize)
			}
		}
		object, bin := filepath.Join(t.TempDir(), "a.o"), filepath.Join(folder, image.file)
		as := []string{"as", "-o", object, "-"}
		ld := []string{"ld", "-e", "0", fmt.Sprintf("-Ttext=%#x", firstCode), fmt.Sprintf("-Tdata=%#x", firstData), "-o", bin, object}
		switch image.file {
		case "prog":
			as = append(as, "-g")
		case "stripped.so":
			ld = append(ld, "-s")
		}
		for _, args := range [][]string{as, ld} {
			c := exec.Command(args[0], args[1:]...)
			c.Stdin = strings.NewReader(source.String())
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
	}
}

// eventList writes the trace of a list of events. TestReports describes the list.
type eventList struct {
	t        *testing.T
	writer   *trace.Writer
	memory   *memtrace.Encoder
	at       event.Stamp
	names    []string // of threads
	branches map[string]uint64
	returns  map[string][]uint64 // of the calls that a thread is in
	writers  map[string]string   // the thread that has an rwlock for writing
	blocks   []string
	mapped   map[uint64]bool // pages
}

const firstID = 1000

func (l *eventList) fail(line, format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf("%q: %s", line, fmt.Sprintf(format, args...))
}

// next is the stamp of the next event.
func (l *eventList) next(thread string) event.Stamp {
	l.at.Seq++
	return l.stamp(thread)
}

// stamp is that of a thread's access now.
func (l *eventList) stamp(thread string) event.Stamp {
	s := l.at
	s.Thread, s.Branches = firstID+arch.ThreadID(slices.Index(l.names, thread)), l.branches[thread]
	return s
}

// operation is a kind of synchronization operation: its effects at the call and at a successful
// return.
type operation struct{ enter, done event.Effects }

var operations = map[event.SyncOp]operation{
	event.OpMutexInit: {}, event.OpMutexDestroy: {}, event.OpBarrierInit: {}, event.OpCreate: {enter: event.Release},
	event.OpMutexLock: {done: event.Acquire}, event.OpMutexUnlock: {enter: event.Release},
	event.OpCondWait:   {enter: event.ReleaseSecond, done: event.Acquire | event.AcquireSecond},
	event.OpCondSignal: {enter: event.Release}, event.OpCondBroadcast: {enter: event.Release},
	event.OpRWReadLock: {done: event.Acquire | event.Shared}, event.OpRWWriteLock: {done: event.Acquire},
	event.OpRWUnlock: {enter: event.Release}, event.OpBarrierWait: {enter: event.Release, done: event.Acquire},
	event.OpSemWait: {done: event.Acquire}, event.OpSemPost: {enter: event.Release}, event.OpJoin: {done: event.Acquire},
	event.OpOnce: {done: event.Acquire}, event.OpSpinLock: {done: event.Acquire}, event.OpSpinUnlock: {enter: event.Release},
}

// add adds the events of a line.
func (l *eventList) add(line string) {
	words := strings.Fields(line)
	if len(words) < 2 {
		l.fail(line, "it is THREAD EVENT ...")
	}
	thread, what, rest := words[0], words[1], words[2:]
	switch what {
	case "start":
		l.start(thread, "")
	case "create":
		l.create(thread, rest[0])
	case "exit":
		l.sync(thread, &event.Sync{Op: event.OpThreadExit, Object: l.object("thread " + thread), Effects: event.Release})
		trace.Put(l.writer.Stream(trace.Exits, 0), &event.Exit{Stamp: l.next(thread)})
	case "branches":
		l.branches[thread] += l.number(rest[0])
	case "atomic":
		addr, _, _ := l.operand(rest[0])
		l.sync(thread, &event.Sync{
			Op: event.OpAtomic, Object: l.object(rest[0]), Addr: arch.Addr(addr), PC: l.place(rest[1]),
			Effects: event.Acquire | event.Release,
		})
	case "read", "write", "locked":
		l.access(thread, what, rest[0], rest[1])
	case "kernel-read", "kernel-write":
		l.kernel(thread, what, rest[0])
	case "call":
		l.call(thread, rest[0])
	case "return":
		l.leave(thread, rest[0])
	case "malloc", "free":
		l.allocator(thread, what, rest)
	case "enter":
		l.perform(thread, rest, event.Enter)
	case "leave":
		l.perform(thread, rest, event.Return)
	default:
		l.perform(thread, words[1:], event.Enter)
		l.perform(thread, words[1:], event.Return)
	}
}

func (l *eventList) number(word string) uint64 {
	n, err := strconv.ParseUint(word, 0, 64)
	if err != nil {
		l.fail(word, "%v", err)
	}
	return n
}

// start starts a thread. The first one of the run has the files in memory.
func (l *eventList) start(thread, parent string) {
	l.names = append(l.names, thread)
	e := event.Start{Stamp: l.next(thread), Process: firstID, Parent: arch.NoThread, Name: thread}
	if parent != "" {
		e.Parent = l.stamp(parent).Thread
	}
	trace.Put(l.writer.Stream(trace.Threads, 0), &e)
	if len(l.names) > 1 {
		return
	}
	for _, image := range images {
		for _, m := range []event.Mapping{
			{Addr: arch.Addr(image.base + firstCode), Offset: arch.PageSize},
			{Addr: arch.Addr(image.base + firstData), Offset: 2 * arch.PageSize},
		} {
			m.Stamp, m.Process, m.Size, m.Name = l.next(thread), firstID, arch.PageSize, "/files/"+image.file
			trace.Put(l.writer.Stream(trace.Mappings, 0), &m)
		}
	}
}

func (l *eventList) create(thread, child string) {
	o := l.object("thread " + child)
	l.sync(thread, &event.Sync{Op: event.OpCreate, Phase: event.Enter, Object: o, Effects: event.Release})
	l.start(child, thread)
	l.sync(child, &event.Sync{Op: event.OpThreadStart, Object: o, Effects: event.Acquire})
	l.sync(thread, &event.Sync{Op: event.OpCreate, Phase: event.Return, Object: o})
}

func (l *eventList) object(name string) event.ObjectID {
	sum := sha256.Sum256([]byte(name))
	return event.ObjectID(uint64(sum[0])<<32 | uint64(sum[1])<<24 | uint64(sum[2])<<16 | uint64(sum[3])<<8 | 1)
}

func (l *eventList) sync(thread string, e *event.Sync) {
	e.Stamp, e.Peer = l.next(thread), arch.NoThread
	trace.Put(l.writer.Stream(trace.Sync, 0), e)
	l.at.Sync++
}

// perform adds the begin or the end of a synchronization operation: OPERATION OBJECT [SECOND] [PLACE].
func (l *eventList) perform(thread string, words []string, phase event.Phase) {
	op := event.SyncOp(max(0, slices.Index(event.SyncOps(), words[0])))
	effects, known := operations[op]
	if !known {
		l.fail(strings.Join(words, " "), "it is no event")
	}
	e := event.Sync{Op: op, Phase: phase, Object: l.object(words[1]), PC: l.place("main:100") + 1}
	if op == event.OpJoin {
		e.Object = l.object("thread " + words[1])
	} else {
		addr, _, _ := l.operand(words[1])
		e.Addr = arch.Addr(addr)
	}
	e.Effects = effects.enter
	if phase == event.Return {
		e.Effects = effects.done
	}
	for _, word := range words[2:] {
		switch {
		case strings.Contains(word, ":"):
			e.PC = l.place(word) + 1 // where the call returns to
		case op == event.OpBarrierInit:
			e.Value = l.number(word)
		case op == event.OpCondWait:
			e.Second = l.object(word)
		case word == "ran" && phase == event.Return:
			e.Effects |= event.Release
		default:
			l.fail(word, "it is no operand of %v", op)
		}
	}
	switch {
	case op == event.OpRWWriteLock:
		l.writers[words[1]] = thread
	case op == event.OpRWUnlock && phase == event.Enter && l.writers[words[1]] == thread:
		delete(l.writers, words[1])
	case op == event.OpRWUnlock && phase == event.Enter:
		e.Effects |= event.Shared
	}
	l.sync(thread, &e)
}

// place is the address of FUNCTION:LINE, of FILE:ADDRESS, or of :ADDRESS in no file.
func (l *eventList) place(word string) arch.Addr {
	name, text, _ := strings.Cut(word, ":")
	n := l.number(text)
	if name == "" {
		return arch.Addr(n)
	}
	for _, image := range images {
		if image.file == name {
			return arch.Addr(image.base + n)
		}
		for number, f := range functions {
			if f.name == name && f.file == image.file && n/100 == uint64(number) {
				return arch.Addr(image.base + firstCode + n/100*0x100 + n%100)
			}
		}
	}
	l.fail(word, "it is no place in code")
	return 0
}

// operand is the address, the size and the value of OBJECT[+OFFSET][:SIZE][=VALUE]. An object is a
// variable, a block of the heap, or stack.THREAD.
func (l *eventList) operand(word string) (addr, size, value uint64) {
	rest, text, valued := strings.Cut(word, "=")
	if valued {
		value = l.number(text)
	}
	size = 4
	rest, text, sized := strings.Cut(rest, ":")
	if sized {
		size = l.number(text)
	}
	name, text, distant := strings.Cut(rest, "+")
	if distant {
		addr = l.number(text)
	}
	if i := slices.Index(variables, name); i >= 0 {
		return addr + images[0].base + firstData + uint64(i)*variableSize, size, value
	}
	if i := slices.Index(l.blocks, name); i >= 0 {
		return addr + heapBase + uint64(i)*blockSize, size, value
	}
	owner, stack := strings.CutPrefix(name, "stack.")
	if i := slices.Index(l.names, owner); stack && i >= 0 {
		return addr + l.stack(owner) - 0x100, size, value
	}
	l.fail(word, "it is no variable, block or stack")
	return 0, 0, 0
}

// stack is the end of a thread's stack.
func (l *eventList) stack(thread string) uint64 {
	return stackBase + uint64(slices.Index(l.names, thread)+1)*stackSize
}

// log logs an entry of a thread, after the page of its address if that is new: zeros.
func (l *eventList) log(thread string, e memlog.Entry, data []byte) {
	var entries []memlog.Entry
	if number := uint64(e.Addr) / arch.PageSize; !l.mapped[number] {
		l.mapped[number] = true
		entries = append(entries, memlog.Entry{Kind: memlog.Zero, PC: number},
			memlog.Entry{Kind: memlog.Map, Addr: arch.Addr(number * arch.PageSize), PC: number})
	}
	entries = append(entries, e)
	l.memory.Add(entries, data, l.stamp(thread), 0)
}

// access adds a load, a store, or the two of an atomic instruction.
func (l *eventList) access(thread, what, operand, place string) {
	addr, size, value := l.operand(operand)
	e := memlog.Entry{Kind: memlog.Load, Addr: arch.Addr(addr), Size: uint16(size), Value: value, PC: uint64(l.place(place))}
	switch what {
	case "write":
		e.Kind = memlog.Store
	case "locked":
		e.Flags = memlog.FlagAtomic
		l.log(thread, e, nil)
		e.Kind = memlog.Store
	}
	l.log(thread, e, nil)
}

// kernel adds an access of the kernel for a thread.
func (l *eventList) kernel(thread, what, operand string) {
	addr, size, value := l.operand(operand)
	e := memlog.Entry{Kind: memlog.Read, Addr: arch.Addr(addr), PC: addr / arch.PageSize, Branches: uint32(size)}
	if what == "kernel-write" {
		e.Kind = memlog.Kernel
	}
	l.log(thread, e, bytes.Repeat([]byte{byte(value)}, int(size)))
}

// call adds the store of a return address.
func (l *eventList) call(thread, place string) {
	pc := uint64(l.place(place))
	l.returns[thread] = append(l.returns[thread], pc+callSize)
	l.log(thread, l.returnAddress(thread, memlog.Store, pc), nil)
}

// leave adds the load of a return address.
func (l *eventList) leave(thread, place string) {
	calls := l.returns[thread]
	if len(calls) == 0 {
		l.fail(thread+" return", "the thread is in no call")
	}
	l.log(thread, l.returnAddress(thread, memlog.Load, uint64(l.place(place))), nil)
	l.returns[thread] = calls[:len(calls)-1]
}

func (l *eventList) returnAddress(thread string, kind memlog.Kind, pc uint64) memlog.Entry {
	calls := l.returns[thread]
	return memlog.Entry{
		Kind: kind, Addr: arch.Addr(l.stack(thread) - 16*uint64(len(calls))), Size: 8, Value: calls[len(calls)-1], PC: pc,
	}
}

// allocator adds the call of malloc, BLOCK SIZE PLACE, or free, BLOCK PLACE, and its return.
func (l *eventList) allocator(thread, what string, words []string) {
	name := words[0]
	if !slices.Contains(l.blocks, name) {
		l.blocks = append(l.blocks, name)
	}
	addr, _, _ := l.operand(name)
	e := event.Heap{Op: event.HeapFree, Old: arch.Addr(addr), PC: l.place(words[len(words)-1]) + 1}
	if what == "malloc" {
		e = event.Heap{Op: event.HeapAllocate, Size: l.number(words[1]), PC: e.PC}
	}
	for _, e.Phase = range []event.Phase{event.Enter, event.Return} {
		if e.Stamp = l.next(thread); e.Phase == event.Return && what == "malloc" {
			e.Addr = arch.Addr(addr)
		}
		trace.Put(l.writer.Stream(trace.Heap, 0), &e)
	}
}

// writeTrace writes the trace of a list. The files of its run are in a folder; changed ones are not
// what they were. A trace that is cut has no end.
func writeTrace(t *testing.T, list, folder string, changed, cut bool) []byte {
	t.Helper()
	var to bytes.Buffer
	w := trace.NewWriter(&to)
	l := &eventList{
		t: t, writer: w, memory: memtrace.NewEncoder(w.Stream(trace.Memory, 0)), branches: map[string]uint64{}, returns: map[string][]uint64{},
		writers: map[string]string{}, mapped: map[uint64]bool{},
	}
	defer l.memory.Close()
	w.Stream(trace.Sync, 0)
	type mount struct {
		Host  string `json:"host"`
		Guest string `json:"guest"`
	}
	err := w.Manifest(map[string]any{"args": []string{"/files/prog"}, "mounts": []mount{{folder, "/files"}}})
	l.start("1", "")
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		l.add(line)
	}
	l.memory.MemorySaved()
	if !cut {
		err = errors.Join(err, w.Summary(summaryOf(t, filepath.Join(folder, "prog"), changed)))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// summaryOf is the summary of a run that read a file.
func summaryOf(t *testing.T, file string, changed bool) any {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if changed {
		content = append(content, '\n')
	}
	sum := sha256.Sum256(content)
	input := map[string]string{"path": file, "sha256": hex.EncodeToString(sum[:])}
	return map[string]any{"result": map[string]any{"inputs": []any{input}}}
}
