package symtrace

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/tracetext"
	"github.com/heddle-dmt/heddle/internal/casefile"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// variables are those of the programs of testdata/programs.txt, by their addresses.
var variables = map[uint64]string{
	data + 0x40: "x", data + 0x48: "y", data + 0x50: "z", data + 0x58: "flag",
	data + 0x80: "m", data + 0xc0: "cond", data + 0x100: "sem", data + 0x140: "bar", data + 0x180: "rw",
	table: "table",
}

// table is an array of tableSize bytes.
const table, tableSize = data + 0x200, 32

// operations are functions of the programs that are not followed, one every 16 bytes from the first.
var operations = []struct {
	name string
	op   event.SyncOp
}{
	{"mutex_lock", event.OpMutexLock},
	{"mutex_trylock", event.OpMutexTryLock},
	{"mutex_unlock", event.OpMutexUnlock},
	{"cond_wait", event.OpCondWait},
	{"cond_timedwait", event.OpCondTimedWait},
	{"cond_signal", event.OpCondSignal},
	{"cond_broadcast", event.OpCondBroadcast},
	{"sem_wait", event.OpSemWait},
	{"sem_post", event.OpSemPost},
	{"barrier_wait", event.OpBarrierWait},
	{"rwlock_rdlock", event.OpRWReadLock},
	{"rwlock_wrlock", event.OpRWWriteLock},
	{"rwlock_unlock", event.OpRWUnlock},
}

// Where the functions of main, of the other thread and the operations are; the first two have
// mainSize bytes.
const (
	mainSize       = worker - code
	firstOperation = code + 0x400
)

// assembly is the source of a program in assembler: the two threads, and macros for calls.
func assembly(main, other string) string {
	var b strings.Builder
	for addr, name := range variables {
		fmt.Fprintf(&b, ".set %s, %#x\n", name, addr)
	}
	for _, o := range operations {
		fmt.Fprintf(&b, ".macro %[1]s object, second=0\nmov edi, offset \\object\nmov esi, offset \\second\ncall do_%[1]s\n.endm\n", o.name)
	}
	b.WriteString(".macro join\nmov rdi, [0x600010]\nxor esi, esi\ncall do_join\n.endm\n")
	b.WriteString(".macro fail\nmov edi, 0x600020\ncall do_fail\n.endm\n")
	fmt.Fprintf(&b, "call create\n%s\nret\n.org %#x\n%s\nret\n", main, mainSize, other)
	fmt.Fprintf(&b, ".org 0x200\ncreate: ret\n.org 0x210\ndo_join: ret\n.org 0x220\ndo_fail: ret\n.org 0x300\nnop\nret\n")
	for i, o := range operations {
		fmt.Fprintf(&b, ".org %#x\ndo_%s: ret\n", firstOperation-code+16*i, o.name)
	}
	return b.String()
}

// textProgram is a program of testdata/programs.txt.
type textProgram struct {
	name    string
	options Options
	source  [2]strings.Builder // of main and of the other thread
	taken   [2][]bool          // their conditional branches
	memory  map[uint64]uint32  // its initial content
	want    string
}

// parsePrograms reads testdata/programs.txt, whose head describes it.
func parsePrograms(t *testing.T) (all []*textProgram) {
	t.Helper()
	for _, c := range casefile.Read(t, "testdata/programs.txt") {
		p := &textProgram{name: c.Name, want: c.Want, memory: map[uint64]uint32{}}
		now := 0
		for _, line := range strings.Split(c.Input, "\n") {
			if strings.HasPrefix(line, "  ") || strings.HasSuffix(line, ":") {
				fmt.Fprintln(&p.source[now], line)
			} else if words := strings.Fields(line); len(words) > 0 {
				now = p.parseHead(t, words)
			}
		}
		all = append(all, p)
	}
	return all
}

// parseHead reads a line that is no instruction, and returns the thread of those after it.
func (p *textProgram) parseHead(t *testing.T, words []string) (now int) {
	t.Helper()
	switch words[0] {
	case "main", "other":
		if now = slices.Index([]string{"main", "other"}, words[0]); len(words) == 1 {
			return now
		}
		for _, word := range words[1:] {
			p.taken[now] = append(p.taken[now], word == "jumps")
		}
	case "noguess":
		p.options.NoGuesses = true
	case "memory":
		var name string
		var offset uint64
		var value uint32
		if _, err := fmt.Sscan(strings.Join(words[1:], " "), &name, &offset, &value); err != nil {
			t.Fatalf("%s: %q: %v", p.name, words, err)
		}
		for addr, variable := range variables {
			if variable == name {
				p.memory[addr+offset] = value
			}
		}
	default:
		t.Fatalf("%s: %q", p.name, words)
	}
	return now
}

// run returns the symbolic trace of the program as text, or the error.
func (p *textProgram) run(t *testing.T) string {
	t.Helper()
	q := newProgram(t, assembly(p.source[0].String(), p.source[1].String()))
	for addr, value := range p.memory {
		binary.LittleEndian.PutUint32(q.memory[addr/pageBytes][addr%pageBytes:], value)
	}
	for i, o := range operations {
		q.image.Functions[firstOperation+16*uint64(i)] = Function{Name: o.name, Role: Synchronize, Op: o.op}
	}
	q.image.Objects = []Object{{table, tableSize}}
	q.thread(1, create, []uint64{behindCreate}, p.taken[0]...)
	q.thread(2, worker, []uint64{behindWorker}, p.taken[1]...)
	r, err := Build(q.image, q.profile, 1, 0, p.options)
	if err != nil {
		return err.Error()
	}
	if err := r.Trace.Check(); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
	p.checkReading(t, tracetext.Format(r.Trace, nil))
	return strings.TrimSpace(tracetext.Format(r.Trace, func(addr uint64) string { return variables[addr] }))
}

// checkReading checks that the text of a trace is read as it was written, unless it has expressions
// beyond the form.
func (p *textProgram) checkReading(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, `"`) {
		return
	}
	trace, err := tracetext.Parse(text)
	if err != nil {
		t.Errorf("%s: %v\n%s", p.name, err, text)
	} else if again := tracetext.Format(trace, nil); again != text {
		t.Errorf("%s is written as\n%sand then as\n%s", p.name, text, again)
	}
}

// TestPrograms: the symbolic traces of the programs of testdata/programs.txt, along the paths that
// it gives, are as it says.
func TestPrograms(t *testing.T) {
	for _, p := range parsePrograms(t) {
		if got := p.run(t); got != p.want {
			t.Errorf("%s:\n%s\nwant\n%s", p.name, got, p.want)
		}
	}
}
