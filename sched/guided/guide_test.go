package guided

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// A toy machine: threads whose programs are letters. "." is an instruction of the
// thread's own, "2" one with two accesses, "L" a call that takes the lock and "U" one that gives it back, each of
// three instructions; a thread that finds the lock taken sleeps within "L". Where
// threads are in their calls' code does not count as their own.

const (
	entryLock, entryUnlock = 0x1000, 0x2000
	first                  = arch.ThreadID(1)
)

type toyThread struct {
	program string
	at      int // the letter
	inside  int // instructions of the call that are over
	asleep  bool
	begun   bool // the first access of "2" is done
}

// pc is 16 for each letter, or in a function.
func (t *toyThread) pc() arch.Addr { return addrOf(t.program, t.at) + arch.Addr(t.inside) }

// addrOf is where a letter begins: two calls in a row are like a call by a stub, which ends where
// the function begins.
func addrOf(program string, at int) arch.Addr {
	switch {
	case at == len(program) || isOwn(program[at]):
		return arch.Addr(16 * at)
	case program[at] == 'L':
		return entryLock
	}
	return entryUnlock
}

// isOwn reports whether a letter is an instruction of the thread's own.
func isOwn(letter byte) bool { return letter == '.' || letter == '2' }

type toy struct {
	threads []*toyThread
	holder  int // of the lock, counted from 1; 0: free
	log     []string
}

// step executes an instruction, and returns whether the thread cannot continue at once.
func (m *toy) step(c *sched.Cluster, k int) (ends bool) {
	t := m.threads[k]
	switch op := t.program[t.at]; {
	case isOwn(op):
		t.begun = false
		m.log = append(m.log, fmt.Sprintf("%d.%d", k+1, t.at))
		t.at++
		return false
	case op == 'L' && t.inside == 1 && m.holder != 0:
		t.asleep = true
		c.Block(first + arch.ThreadID(k))
		return true
	case op == 'L' && t.inside == 1:
		m.holder = k + 1
	case op == 'U' && t.inside == 1:
		m.holder = 0
		for i, other := range m.threads {
			if other.asleep {
				other.asleep = false
				c.Ready(first+arch.ThreadID(i), c.Makespan())
			}
		}
	}
	if t.inside++; t.inside == 3 {
		m.log = append(m.log, fmt.Sprintf("%d.%d", k+1, t.at))
		t.at, t.inside = t.at+1, 0
	}
	return false
}

// threads are those of programs, in the form of a plan: calls with the instructions before them.
func planOf(programs []string) *Plan {
	p := &Plan{}
	for k, program := range programs {
		t := Thread{ID: first + arch.ThreadID(k)}
		since := uint64(0)
		for at := range len(program) {
			if isOwn(program[at]) {
				since++
				continue
			}
			t.Calls = append(t.Calls, Call{After: since, Entry: addrOf(program, at), Return: addrOf(program, at+1), Name: program[at : at+1]})
			since = 0
		}
		p.Threads = append(p.Threads, t)
		p.Last = append(p.Last, t.ID)
	}
	return p
}

// place is where a thread is that has executed a number of letters.
func place(thread int, program string, letters int) Step {
	s := Step{Thread: first + arch.ThreadID(thread), Core: arch.NoCore, Until: Place}
	for i := range letters {
		s.Since++
		if !isOwn(program[i]) {
			s.Calls, s.Since = s.Calls+1, 0
		}
	}
	return s
}

// play runs programs under a guide, and returns the letters in the order in which they
// were over.
func play(t *testing.T, programs []string, g *Guide) []string {
	t.Helper()
	c, err := sched.NewWithPolicy(2, g)
	if err != nil {
		t.Fatal(err)
	}
	m := &toy{}
	for k, p := range programs {
		m.threads = append(m.threads, &toyThread{program: p})
		c.Ready(first+arch.ThreadID(k), 0)
	}
	return goOn(m, c, g)
}

// goOn runs the threads of a machine to their ends.
func goOn(m *toy, c *sched.Cluster, g *Guide) []string {
	for range 10_000 {
		s, verdict := c.Next(0, false)
		if verdict != sched.Run {
			break
		}
		k := int(s.Thread - first)
		now := m.threads[k]
		n, ends := uint64(0), false
		for n < s.Instructions && !ends && now.at < len(now.program) {
			ends = m.step(c, k)
			n++
		}
		accesses := uint8(0)
		if s.Accesses > 0 && !ends && now.at < len(now.program) && now.program[now.at] == '2' {
			now.begun, accesses = true, 1
			m.log = append(m.log, fmt.Sprintf("%d.%d first", k+1, now.at))
		}
		g.Ended(now.pc(), n, accesses)
		c.Ran(s, n, arch.Cycles(n))
		if now.at == len(now.program) {
			c.Exit(s.Thread)
		}
	}
	return m.log
}

// Invariant 1 for threads without calls: any order of their instructions is carried
// out.
func TestEveryOrderIsCarriedOut(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		programs := []string{strings.Repeat(".", 1+r.IntN(6)), strings.Repeat(".", 1+r.IntN(6)), strings.Repeat(".", 1+r.IntN(6))}
		p, at, want := planOf(programs), make([]int, 3), []string(nil)
		for left := len(programs[0] + programs[1] + programs[2]); left > 0; left-- {
			k := r.IntN(3)
			for at[k] == len(programs[k]) {
				k = (k + 1) % 3
			}
			want = append(want, fmt.Sprintf("%d.%d", k+1, at[k]))
			at[k]++
			p.Steps = append(p.Steps, place(k, programs[k], at[k]))
		}
		g := New(p)
		if got := play(t, programs, g); !slices.Equal(got, want) || g.Why() != "" || g.Detours() != 0 {
			t.Fatalf("seed %d: %v, want %v: %s, step %d, %d detours", seed, got, want, g.Why(), g.Step(), g.Detours())
		}
	}
}

// So is any order of the accesses of instructions that have two.
func TestEveryOrderOfAccessesIsCarriedOut(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		programs := make([]string, 3)
		for k := range programs {
			for range 1 + r.IntN(6) {
				programs[k] += string(".2"[r.IntN(2)])
			}
		}
		p, at, begun, want := planOf(programs), make([]int, 3), make([]bool, 3), []string(nil)
		for at[0]+at[1]+at[2] < len(programs[0]+programs[1]+programs[2]) {
			k := r.IntN(3)
			for at[k] == len(programs[k]) {
				k = (k + 1) % 3
			}
			if begun[k] = programs[k][at[k]] == '2' && !begun[k] && r.IntN(2) == 0; begun[k] {
				step := place(k, programs[k], at[k])
				step.Accesses = 1
				p.Steps, want = append(p.Steps, step), append(want, fmt.Sprintf("%d.%d first", k+1, at[k]))
				continue
			}
			want = append(want, fmt.Sprintf("%d.%d", k+1, at[k]))
			at[k]++
			p.Steps = append(p.Steps, place(k, programs[k], at[k]))
		}
		g := New(p)
		if got := play(t, programs, g); !slices.Equal(got, want) || g.Why() != "" || g.Detours() != 0 {
			t.Fatalf("seed %d: %v, want %v: %s, step %d, %d detours", seed, got, want, g.Why(), g.Step(), g.Detours())
		}
	}
}

// Calls have any number of instructions: places are named by calls and the instructions after them.
// The lock is taken by the thread that the plan names.
func TestPlacesAfterCalls(t *testing.T) {
	programs := []string{".L..U.", "..L.U"}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		p := planOf(programs)
		var want []string
		for _, k := range order {
			p.Steps = append(p.Steps, place(k, programs[k], len(programs[k])))
			for at := range len(programs[k]) {
				want = append(want, fmt.Sprintf("%d.%d", k+1, at))
			}
		}
		g := New(p)
		if got := play(t, programs, g); !slices.Equal(got, want) || g.Why() != "" {
			t.Errorf("%v, want %v: %s", got, want, g.Why())
		}
	}
}

// A step may end between two calls without an instruction between them.
func TestPlacesBetweenCalls(t *testing.T) {
	programs := []string{".LU.", ".L.U"}
	p := planOf(programs)
	waits := place(1, programs[1], 1)
	waits.Until = Waits
	p.Steps = []Step{place(0, programs[0], 2), waits, place(0, programs[0], 4), place(1, programs[1], 4)}
	g := New(p)
	want := []string{"1.0", "1.1", "2.0", "1.2", "1.3", "2.1", "2.2", "2.3"}
	if got := play(t, programs, g); !slices.Equal(got, want) || g.Why() != "" {
		t.Errorf("%v, want %v: %s", got, want, g.Why())
	}
}

// A step may end where a thread waits in its call, and the thread continues when it was woken.
func TestWaitingInACall(t *testing.T) {
	programs := []string{".L..U.", ".L.U"}
	p := planOf(programs)
	waits := place(1, programs[1], 1)
	waits.Until = Waits
	p.Steps = []Step{place(0, programs[0], 3), waits, place(0, programs[0], 6), place(1, programs[1], 4)}
	g := New(p)
	want := []string{"1.0", "1.1", "1.2", "2.0", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3"}
	if got := play(t, programs, g); !slices.Equal(got, want) || g.Why() != "" {
		t.Errorf("%v, want %v: %s", got, want, g.Why())
	}
}

// A thread whose turn it is, and that waits for a thread whose turn it is not, is reported; the run
// reaches its end.
func TestWaitingForAnother(t *testing.T) {
	programs := []string{".L..U.", ".L.U"}
	p := planOf(programs)
	p.Steps = []Step{place(0, programs[0], 3), place(1, programs[1], 4), place(0, programs[0], 6)}
	g := New(p)
	got := play(t, programs, g)
	if len(got) != 10 || g.Detours() == 0 || !strings.Contains(g.Why(), "thread 2 waits in its call 0, and thread 1 continues") {
		t.Errorf("%v, %d detours: %s", got, g.Detours(), g.Why())
	}
}

// A thread that reaches another place than the plan has is reported, with both.
func TestAnotherPath(t *testing.T) {
	for _, ran := range []string{"..U.", "...L."} {
		p := planOf([]string{"..L."})
		p.Steps = []Step{place(0, "..L.", 3)}
		g := New(p)
		play(t, []string{ran}, g)
		if !strings.Contains(g.Why(), "should reach L at 0x1000 after 2") || g.Complete() {
			t.Errorf("%s instead of ..L.: %q", ran, g.Why())
		}
	}
}

// Stores wait in the step that lists them, the newest ones, and in no other.
func TestStoresWaitInTheirStep(t *testing.T) {
	store := minimize.Store{Thread: 2, Addr: 0x40}
	p := planOf([]string{"...", "."})
	p.Steps = []Step{place(0, "...", 1), place(0, "...", 2)}
	p.Steps[0].Hold = []minimize.Hold{{Store: store, Newest: 3}}
	g := New(p)
	if n := g.Held(store); n != 3 {
		t.Errorf("%d stores wait in the first step", n)
	}
	if n := g.Held(minimize.Store{Thread: 1, Addr: 0x40}); n != 0 {
		t.Errorf("%d stores of another thread wait", n)
	}
	play(t, []string{"...", "."}, g)
	if n := g.Held(store); n != 0 || !g.Complete() {
		t.Errorf("%d stores wait after the last step", n)
	}
}

// A plan may begin in the middle of a run: places are counted from there, and a call
// that is under way ends where it returns to.
func TestBeginsAtACheckpoint(t *testing.T) {
	programs := []string{".L..U.", "...L.U"}
	p := planOf(programs)
	p.PriorDecisions = 1
	p.Threads[0].Calls[0] = Call{Return: p.Threads[0].Calls[0].Return, Name: "L"}
	p.Threads[1].Calls[0].After = 2
	p.Steps = []Step{place(1, "..L.U", 1), place(0, "L..U.", 1), place(0, "L..U.", 5), place(1, "..L.U", 5)}
	g := New(p)
	c, err := sched.NewWithPolicy(2, g)
	if err != nil {
		t.Fatal(err)
	}
	m := &toy{}
	for k, program := range programs {
		m.threads = append(m.threads, &toyThread{program: program})
		c.Ready(first+arch.ThreadID(k), 0)
	}
	// Before the checkpoint thread 1 begins the call, and thread 2 executes an instruction.
	for _, k := range []int{0, 0, 1} {
		m.step(c, k)
		g.Ended(m.threads[k].pc(), 1, 0)
	}
	m.log = nil
	want := []string{"2.1", "1.1", "1.2", "1.3", "1.4", "1.5", "2.2", "2.3", "2.4", "2.5"}
	if got := goOn(m, c, g); !slices.Equal(got, want) || g.Why() != "" {
		t.Errorf("%v, want %v: %s", got, want, g.Why())
	}
}
