package pathsearch

import (
	"bytes"
	"context"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/follow"
)

// stage is the machine of a search. It lets the thread that is asked for execute a number of
// instructions, and keeps the program's output.
type stage struct {
	machine.NoHook
	m      *machine.Machine
	policy mover
	log    *memlog.Buffer
	stdout bytes.Buffer
	stderr bytes.Buffer

	ran     uint64    // instructions of the last quantum
	pc      arch.Addr // after it
	call    arch.Addr // the system call that ended it; 0: none did
	process uint64    // of the thread that ran, in the bits above those of addresses
	entries []memlog.Entry

	program  string                        // that the first process executes at the second thread's creation
	repeated map[string]map[arch.Addr]bool // of other programs, whether instructions are repeated ones
}

func newStage(c machine.Config) (*stage, error) {
	s := &stage{log: memlog.NewBuffer(), repeated: map[string]map[arch.Addr]bool{}}
	c.Stdout, c.Stderr = &s.stdout, &s.stderr
	m, err := machine.New(c, machine.WithHook(s), machine.Isolated(), machine.WithPolicy(&s.policy))
	if err != nil {
		s.log.Close()
		return nil, err
	}
	s.m = m
	return s, nil
}

func (s *stage) close() {
	s.m.Close()
	s.log.Close()
}

// Prepare implements machine.Hook.
func (s *stage) Prepare(m *machine.Machine) error {
	if err := m.CPU().LogMemory(memlog.Filter{Partial: true}); err != nil {
		return err
	}
	m.CPU().MuteMemory(true)
	return nil
}

// EngineStopped implements machine.Hook.
func (s *stage) EngineStopped(t *kernel.Task, _ arch.Stop) machine.Reaction {
	s.m.CPU().SwapMemory(s.log)
	s.process = uint64(t.Process().PID()) << 48
	for _, e := range s.log.Entries() {
		if e.Kind == memlog.Load || e.Kind == memlog.Store {
			s.entries = append(s.entries, e)
		}
	}
	return machine.Proceed
}

// lengthOfSyscall is the number of bytes of the instruction SYSCALL.
const lengthOfSyscall = 2

// AfterQuantum implements machine.Hook.
func (s *stage) AfterQuantum(_ *kernel.Task, stop arch.Stop) {
	s.ran += stop.Instructions
	s.policy.left -= min(s.policy.left, stop.Instructions)
	s.pc = s.m.CPU().PC()
	if stop.Reason != arch.StopSyscall {
		return
	}
	var r arch.Regs
	s.m.CPU().Regs(&r)
	if number := r.GPR[arch.RAX]; !linux.Has(number, linux.ThreadLocal) {
		s.call = s.pc - lengthOfSyscall
	}
}

// runToSecondThread runs the program to the creation of its second thread, and returns how many
// instructions the first has executed. It reports whether there is a second one.
func (s *stage) runToSecondThread(ctx context.Context, r *recorded) (instructions uint64, found bool, err error) {
	for n := 0; !s.m.Done(); n++ {
		if len(s.m.Kernel().Tasks()) > 1 {
			s.m.CPU().ForgetMemory()
			s.m.CPU().MuteMemory(false)
			s.program = s.m.Kernel().Tasks()[0].Process().Executable()
			return s.ran, true, nil
		}
		if n%256 == 0 && ctx.Err() != nil {
			return 0, false, ctx.Err()
		}
		s.policy.thread, s.policy.core, s.policy.left = r.routes[0].thread, r.firstCore, prefixQuantum
		s.m.Step()
	}
	return 0, false, nil
}

// prefixQuantum bounds the quanta up to the second thread, in instructions, so that Ctrl-C ends them.
const prefixQuantum = 10_000_000

// moved is the result of a move.
type moved struct {
	reached int    // the index in the thread's path
	ran     uint64 // instructions, the rounds of repeated ones counted
	pc      arch.Addr
	calls   []arch.Addr
}

// move lets a thread go from an index of its path to another one on a core. It does not get there if it waits in
// the kernel, or if the run ends.
func (s *stage) move(r *route, core arch.CoreID, from, to int, note func([]memlog.Entry)) (m moved) {
	m.reached = from
	for m.reached < to && !s.m.Done() && !s.policy.strayed {
		if m.ran > 0 && !follow.IsRunnable(s.m.Cluster(), r.thread) {
			break
		}
		distance := s.nextRepeated(r, m.reached, to) - m.reached
		repeats := distance == 0
		if repeats {
			distance = 1
		}
		s.step(r.thread, core, uint64(distance), note, &m)
		switch {
		case !repeats:
			m.reached += int(s.ran)
		case s.ran > 0 && s.pc != r.pc(m.reached):
			m.reached++
		}
	}
	return m
}

// step lets a thread execute up to a number of instructions.
func (s *stage) step(thread arch.ThreadID, core arch.CoreID, instructions uint64, note func([]memlog.Entry), m *moved) {
	s.policy.thread, s.policy.core, s.policy.left, s.policy.fired, s.policy.strayed = thread, core, instructions, 0, false
	s.ran, s.call, s.entries = 0, 0, s.entries[:0]
	for s.ran == 0 && !s.m.Done() && !s.policy.strayed {
		s.m.Step()
	}
	m.ran += s.ran
	if s.ran > 0 {
		m.pc = s.pc
	}
	if s.call != 0 {
		m.calls = append(m.calls, s.call)
	}
	if note != nil && len(s.entries) > 0 {
		note(s.entries)
	}
}

// continueThread lets a thread execute up to a number of instructions, or until it waits.
func (s *stage) continueThread(thread arch.ThreadID, instructions uint64) {
	for m := (moved{}); m.ran < instructions && !s.m.Done() && follow.IsRunnable(s.m.Cluster(), thread); {
		s.step(thread, arch.NoCore, instructions-m.ran, nil, &m)
	}
}

// findStandstill lets the machine find out that no thread can ever run again, if none can run.
func (s *stage) findStandstill() {
	if !s.m.Done() && s.m.Cluster().Runnable() == 0 {
		s.m.Step()
	}
}

// nextRepeated is the first index of a repeated instruction in a part of a thread's path, or the end of the part. The
// thread's process may execute another program than the first one did, at the same addresses.
func (s *stage) nextRepeated(r *route, from, to int) int {
	process := s.processOf(r.thread)
	if process == nil || process.Executable() == s.program {
		return min(r.nextRepeated(from), to)
	}
	known := s.repeated[process.Executable()]
	if known == nil {
		known = map[arch.Addr]bool{}
		s.repeated[process.Executable()] = known
	}
	for i := from; i < to; i++ {
		pc := r.pc(i)
		is, ok := known[pc]
		if !ok {
			is = repeats(process, pc)
			known[pc] = is
		}
		if is {
			return i
		}
	}
	return to
}

// processOf is the process of a thread, or nil.
func (s *stage) processOf(t arch.ThreadID) *kernel.Process {
	tasks := s.m.Kernel().Tasks()
	if i := slices.IndexFunc(tasks, func(x *kernel.Task) bool { return x.ID() == t }); i >= 0 {
		return tasks[i].Process()
	}
	return nil
}

// repeats reports whether the instruction at an address is a string instruction with a prefix that repeats it:
// the machine counts each of its rounds.
func repeats(p *kernel.Process, pc arch.Addr) bool {
	var code [4]byte
	n := p.Peek(pc, code[:])
	prefix := false
	for _, b := range code[:n] {
		switch {
		case b == 0xf2 || b == 0xf3:
			prefix = true
		case b == 0x66 || b == 0x67 || b&0xf0 == 0x40:
		default:
			return prefix && (b >= 0xa4 && b <= 0xa7 || b >= 0xaa && b <= 0xaf)
		}
	}
	return false
}

// exists reports whether there is a thread, and it has not ended.
func (s *stage) exists(t arch.ThreadID) bool {
	return s.processOf(t) != nil
}

// mover is the policy of a search: the thread that is asked for runs. It has the times that package guided
// has for the same order of threads.
type mover struct {
	thread  arch.ThreadID
	core    arch.CoreID
	left    uint64
	before  arch.ThreadID
	fired   int  // timers, since a thread has run
	strayed bool // the thread cannot run, and no time passes: another one has
}

// Ready implements sched.Policy, and so do the other methods.
func (*mover) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles)       {}
func (*mover) Block(*sched.Cluster, arch.ThreadID)                    {}
func (*mover) Exit(*sched.Cluster, arch.ThreadID)                     {}
func (*mover) Yield(*sched.Cluster, arch.ThreadID)                    {}
func (*mover) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}

// mostTimers is how many timers may fire while a thread waits.
const mostTimers = 64

// Next implements sched.Policy.
func (p *mover) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	runnable := follow.IsRunnable(c, p.thread)
	if hasTimer && (timer <= c.Makespan() || !runnable && p.fired < mostTimers) {
		p.fired++
		return sched.Quantum{}, sched.FireTimer
	}
	t, d := p.thread, follow.Distance{Instructions: max(1, p.left)}
	if !runnable {
		p.strayed = true
		t, d = c.RunnableThread(0), follow.Distance{Instructions: 1}
	}
	core := follow.PlaceOn(c, t, p.core)
	if t != p.before {
		c.Lift(core, c.Makespan())
		p.before = t
	}
	return d.Quantum(core, t), sched.Run
}
