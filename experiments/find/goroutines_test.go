package find

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// TestGoroutinesOfOneThread: two goroutines that one thread carries share what both access, from the creation of the second
// one on; the run-time system's accesses on their behalf are the thread's.
func TestGoroutinesOfOneThread(t *testing.T) {
	const create, queue, proceed = 100, 200, 300
	const own, library = 1000, 2000
	p := newProfile(func(pc arch.Addr) bool { return pc == own })
	g := goroutines{create: create, queue: queue, proceed: proceed}
	reaches := func(rip, rbx, rdx uint64) {
		r := arch.Regs{RIP: rip}
		r.GPR[arch.RBX], r.GPR[arch.RDX] = rbx, rdx
		g.follow(1, &r, p)
		p.fiber = g.carried[1]
	}
	access := func(pc uint64, at arch.Addr, kind memlog.Kind) {
		p.take([]memlog.Entry{{Kind: kind, PC: pc, Addr: at, Size: 8}})
	}
	for second := range 2 {
		if second == 1 {
			p.beginSecond()
		}
		p.noteThread(1)
		p.thread = 1
		g.begin(1, p.births)
		p.fiber = g.carried[1]
		access(own, 8, memlog.Store)      // before the goroutine is made
		reaches(create, 0, 0)             //
		reaches(queue, 0x5000, 0)         // main has made one
		access(own, 16, memlog.Store)     // while it exists
		access(library, 24, memlog.Store) // by the run-time system
		reaches(proceed, 0, 0x5000)
		for _, at := range []arch.Addr{8, 16} {
			access(own, at, memlog.Load)
		}
		access(library, 24, memlog.Load)
		access(own, 0x5000+stackGuard, memlog.Load)
		reaches(queue, 0x5000, 0) // it is ready again, and no new one
		reaches(proceed, 0, 0x6000)
		if g.carried[1] != firstGoroutine {
			t.Errorf("goroutine %d, should be that of main", g.carried[1])
		}
		access(own, 0x5000+stackGuard, memlog.Store)
	}
	d := p.result()
	if d.at[own] != loads|stores || d.at[library] != 0 {
		t.Errorf("points %v", d.at)
	}
	if l := d.lines[0]; len(d.lines) != 1 || l.total != 2 || l.agents != 2 {
		t.Errorf("lines %+v", d.lines)
	}
	if p.births.Count() != 3 { // the thread and two goroutines
		t.Errorf("%d births", p.births.Count())
	}
}

// TestFunctionsOfGo: names as the symbol tables of programs have them.
func TestFunctionsOfGo(t *testing.T) {
	for name, want := range map[string]struct{ acts, own bool }{
		"main.main.func1":                        {true, true},
		"example.com/user/queue.(*Queue).Put":    {true, true},
		"bytes.(*Buffer).Write":                  {true, false},
		"sync.(*WaitGroup).Add":                  {true, false},
		"internal/sync.(*Mutex).lockSlow":        {true, false},
		"runtime.chansend":                       {true, false},
		"runtime.mapassign_fast64":               {true, false},
		"internal/runtime/maps.(*Map).putSlot":   {true, false},
		"runtime.selectgo":                       {true, false},
		"runtime.semacquire1":                    {true, false},
		"runtime.mallocgc":                       {false, false},
		"runtime.lock2":                          {false, false},
		"internal/runtime/atomic.(*Uint32).Load": {false, false},
		"runtime.semasleep":                      {false, false},
		"gogo":                                   {false, false},
		"github.com/x/runtimes.(*T).Do":          {true, true},
	} {
		if acts, own := actsForGoroutine(name), isOfGoProgram(name); acts != want.acts || own != want.own {
			t.Errorf("%s: acts for a goroutine %v, own %v", name, acts, own)
		}
	}
}
