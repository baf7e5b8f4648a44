package find

import (
	"regexp"
	"strings"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/sharing"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
)

// goroutines follows which goroutine each thread of a Go program carries. Go's run-time system passes through three
// functions, whose arguments say it: newproc1 makes a goroutine, runqput is then called with it, and gogo
// continues one. They have had these arguments in registers since Go 1.17.
//
// Two goroutines that one thread has carried one after the other could be carried by two: without them
// memory that both use would be taken for one thread's.
type goroutines struct {
	create, queue, proceed arch.Addr // the functions; 0: the program is not of Go, or has no symbols
	numbers                map[uint64]uint32
	count                  uint32
	carried                map[arch.ThreadID]uint32
	creating               map[arch.ThreadID]bool
}

// firstGoroutine is that of main, which exists at the start.
const firstGoroutine = 1

// find finds the functions in the program of a process.
func (g *goroutines) find(s *stage, p *kernel.Process) {
	file := s.openFile(s.executable)
	if !file.IsGo() {
		return
	}
	places := p.Places(s.unwinder, arch.Regs{RIP: auxiliaryValue(p, atEntry)}, 1)
	if len(places) == 0 || places[0].Path != s.executable {
		return
	}
	for _, x := range file.Symbols() {
		for name, at := range map[string]*arch.Addr{"runtime.newproc1": &g.create, "runtime.runqput": &g.queue, "gogo": &g.proceed} {
			if string(x.RawName()) == name {
				*at = arch.Addr(x.Addr + places[0].Bias)
			}
		}
	}
}

// stops are the instructions at which follow is to be called.
func (g *goroutines) stops() []arch.Addr {
	if g.create == 0 || g.queue == 0 || g.proceed == 0 {
		return nil
	}
	return []arch.Addr{g.create, g.queue, g.proceed}
}

// stackGuard is the place, in a goroutine's description, of a number that each function compares with the stack pointer at
// its beginning; others change it to have the goroutine give way.
const stackGuard = 16

// begin begins an execution, in which a thread carries the goroutine of main.
func (g *goroutines) begin(main arch.ThreadID, b *sharing.Births) {
	if g.stops() == nil {
		return
	}
	g.numbers, g.count, g.creating = map[uint64]uint32{}, firstGoroutine, map[arch.ThreadID]bool{}
	g.carried = map[arch.ThreadID]uint32{main: firstGoroutine}
	b.NoteFiber(firstGoroutine)
}

// follow notes what a thread does that is at the beginning of a function.
func (g *goroutines) follow(t arch.ThreadID, r *arch.Regs, p *profile) {
	switch arch.Addr(r.RIP) {
	case g.create:
		g.creating[t] = true
	case g.queue:
		if g.creating[t] {
			g.count++
			g.creating[t], g.numbers[r.GPR[arch.RBX]] = false, g.count
			p.births.NoteFiber(g.count)
		}
	case g.proceed:
		g.carried[t] = max(firstGoroutine, g.numbers[r.GPR[arch.RDX]])
		p.ignored[p.process|(r.GPR[arch.RDX]+stackGuard)/sharing.CellSize] = true
	}
}

// Functions of Go's library by their names, which begin with the path of a package: those of packages whose path does not
// begin with the name of a host are not the program's.
var (
	goLibrary = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|` +
			`errors|expvar|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|` +
			`regexp|runtime|slices|sort|strconv|strings|structs|sync|syscall|testing|text|time|unicode|unique|unsafe|vendor|weak)(/[^.]*)?\.`)
	})
	// goScheduler is the run-time system, which acts for threads: the assembler functions among it have no package.
	goScheduler = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(runtime(/[^.]*)?|internal/runtime(/[^.]*)?)\.|^[^.]*$`)
	})
	// goExchange is the part of the library by which goroutines of a program notice each other.
	goExchange = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(internal/)?sync(/[^.]*)?\.|^internal/runtime/maps\.|` +
			`^runtime\.(\(\*(hchan|waitq|semaRoot|notifyList)\)\.|chan|closechan|(select|map|semacquire|semrelease|notifyList)|(send|recv)(Direct)?$|full$|empty$|memmove$)`)
	})
)

// actsForGoroutine reports whether a function of a Go program acts for the goroutine that calls it, and not for
// the thread.
func actsForGoroutine(function string) bool {
	return !goScheduler().MatchString(function) || goExchange().MatchString(function)
}

// isOfGoProgram reports whether a function is the program's own.
func isOfGoProgram(function string) bool {
	return strings.Contains(function, ".") && !goLibrary().MatchString(function)
}
