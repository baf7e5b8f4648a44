package enforce

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

var update = flag.Bool("update", false, "rewrite testdata/scripts.txt")

// TestScripts plays the scripts of testdata/scripts.txt, whose head describes them, and compares
// the answers of the Enforcer and its orders with the text after each "->".
func TestScripts(t *testing.T) {
	const path = "testdata/scripts.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var p *player
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		step, _, _ := strings.Cut(line, "->")
		step = strings.TrimRight(step, " ")
		words := strings.Fields(step)
		switch {
		case len(words) == 0 || words[0][0] == '#':
			fmt.Fprintln(&out, step)
			continue
		case words[0] == "threads":
			p = newPlayer(t, words[1:])
		}
		p.t, p.line = t, i+1
		if answer := p.play(words); answer != "" {
			step = fmt.Sprintf("%-36s -> %s", step, answer)
		}
		fmt.Fprintln(&out, step)
	}
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, want := strings.Split(out.String(), "\n"), strings.Split(string(text), "\n")
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%s:%d: got %q, want %q", path, i+1, got[i], want[i])
		}
	}
}

// player plays one script.
type player struct {
	t        *testing.T
	line     int
	schedule event.Schedule
	options  Options
	objects  map[string]event.ObjectID
	enforcer *Enforcer
	gate     sched.Gate
	done     map[string]uint64 // instructions by thread
	now      arch.Cycles
	complete bool // that was reported
}

func newPlayer(t *testing.T, threads []string) *player {
	p := &player{t: t, objects: map[string]event.ObjectID{}, done: map[string]uint64{}}
	p.schedule.Threads = threads
	p.schedule.Objects = map[event.ObjectID]string{}
	return p
}

func (p *player) number(text string) uint64 {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		p.t.Fatalf("line %d: %v", p.line, err)
	}
	return uint64(n)
}

// thread is the number of a thread, and its id the number plus one.
func (p *player) thread(name string) int {
	n := slices.Index(p.schedule.Threads, name)
	if n < 0 {
		n = len(p.schedule.Threads)
	}
	return n
}

func (p *player) object(name string) event.ObjectID {
	if _, known := p.objects[name]; !known {
		id := event.ObjectID(len(p.objects) + 1)
		p.objects[name], p.schedule.Objects[id] = id, name
	}
	return p.objects[name]
}

func (p *player) operation(name string) event.SyncOp {
	n := slices.Index(event.SyncOps(), name)
	if n < 0 {
		p.t.Fatalf("line %d: no operation %q", p.line, name)
	}
	return event.SyncOp(n)
}

// argument is word i, or a default.
func argument(words []string, i int, otherwise string) string {
	if i < len(words) {
		return words[i]
	}
	return otherwise
}

// play adds a line to the schedule, or carries out a step and returns what the Enforcer did.
func (p *player) play(words []string) string {
	switch words[0] {
	case "threads":
		return ""
	case "operation", "call", "constraint", "option":
		p.extend(words)
		return ""
	}
	if p.enforcer == nil {
		p.enforcer = New(&p.schedule, p.options)
	}
	answer := p.step(words)
	return strings.TrimPrefix(strings.Join(append([]string{answer}, p.orders()...), ", "), ", ")
}

// extend adds a line to the schedule or the options.
func (p *player) extend(words []string) {
	s := &p.schedule
	switch words[0] {
	case "operation":
		s.Operations = append(s.Operations, event.Operation{
			Thread: p.thread(words[1]), Part: event.Part(slices.Index(event.Parts(), words[2])), Op: p.operation(words[3]),
			Object: p.object(words[4]), Result: int64(p.number(argument(words, 5, "0"))),
		})
	case "call":
		s.Operations = append(s.Operations, event.Operation{
			Thread: p.thread(words[1]), Part: event.SystemCall, Number: p.number(words[2]), Result: int64(p.number(words[3])),
			Time: arch.Cycles(p.number(argument(words, 4, "0"))),
		})
	case "constraint":
		point := func(w []string) event.Point {
			return event.Point{Thread: p.thread(w[0]), Done: int(p.number(w[1])), PC: arch.Addr(p.number(w[2])), Instructions: p.number(w[3])}
		}
		s.Constraints = append(s.Constraints, event.Constraint{First: point(words[1:5]), Second: point(words[6:10])})
	case "option":
		switch words[1] {
		case "stuck":
			s.Stuck = true
		case "sync-only":
			p.options.SyncOnly = true
		case "skip-wait":
			p.options.SkipWait = true
		case "free":
			p.options.Free = true
		case "break-out":
			p.options.BreakOut = arch.Cycles(p.number(words[2]))
		case "loose":
			p.options.Loose = append(p.options.Loose, int(p.number(words[2])))
		default:
			p.t.Fatalf("line %d: no option %q", p.line, words[1])
		}
	}
}

// step carries out a step of a thread.
func (p *player) step(words []string) string {
	e, g := p.enforcer, &p.gate
	if words[0] == "stuck" {
		e.Stuck(g)
		return ""
	}
	name := words[0]
	id := arch.ThreadID(p.thread(name) + 1)
	point := sched.SyncPoint{Thread: id, Name: name, Now: p.now, Instructions: p.done[name]}
	switch words[1] {
	case "start":
		point.Kind = sched.AtStart
	case "enter", "return":
		op := event.Sync{Op: p.operation(words[2]), Phase: event.Enter, Addr: arch.Addr(0x1000 * uint64(p.object(words[3])))}
		point.Kind, point.Sync = sched.AtEnter, &op
		if words[1] == "return" {
			op.Phase, op.Result = event.Return, int64(p.number(argument(words, 4, "0")))
			point.Kind = sched.AtReturn
		}
	case "wake":
		point.Kind, point.InOperation = sched.AtWake, true
	case "call":
		point.Kind, point.Call = sched.AtCall, &event.Syscall{Number: p.number(words[2])}
	case "at":
		point.Kind, point.PC = sched.AtInstruction, arch.Addr(p.number(words[2]))
	case "runs":
		p.done[name] += p.number(words[2])
		p.now += arch.Cycles(p.number(words[2]))
		e.Observe(g, sched.ThreadEvent{Kind: sched.QuantumEnded, Thread: id, Instructions: p.done[name]})
		e.Stepped(g, id, p.number(words[2]), p.now)
		return ""
	case "left":
		return p.describeLeft(e.StopDistance(id, p.done[name]))
	case "called":
		e.Called(g, id, p.number(words[2]))
		return ""
	case "blocked":
		e.Blocked(g, id, true)
		return ""
	case "woken":
		e.Woken(g, id)
		return ""
	case "exits":
		g.Forget(id)
		e.Exited(g, id)
		return ""
	default:
		p.t.Fatalf("line %d: no step %q", p.line, words[1])
	}
	if g.Ask(e, &point) {
		return "passes"
	}
	return "is held"
}

// describeLeft describes how far a thread may run.
func (p *player) describeLeft(soon, exactly uint64, _ uint8) string {
	switch {
	case exactly != anyNumber:
		return fmt.Sprintf("exactly %d", exactly)
	case soon != anyNumber:
		return fmt.Sprintf("about %d", soon)
	}
	return "any number"
}

// orders describes the orders of the Enforcer since the last step.
func (p *player) orders() (list []string) {
	name := func(id arch.ThreadID) string { return p.schedule.Threads[id-1] }
	released, _ := p.gate.Take()
	for _, r := range released {
		list = append(list, "releases "+name(r.Thread))
	}
	for {
		e, ok := p.gate.TakeEffect(arch.NoThread, sched.Answer, sched.Leave, sched.Expire, sched.Rouse, sched.Deliver, sched.Overwrite)
		if !ok {
			break
		}
		list = append(list, map[sched.EffectKind]string{
			sched.Answer: fmt.Sprintf("answers %s with %d", name(e.Thread), int64(e.Result)),
			sched.Leave:  fmt.Sprintf("lets %s leave with %d", name(e.Thread), int64(e.Result)),
			sched.Expire: "ends the wait of " + name(e.Thread) + " by its timeout",
			sched.Rouse:  "ends the wait of " + name(e.Thread),
		}[e.Kind])
	}
	switch p.gate.Verdict() {
	case sched.GaveUp:
		list = append(list, "gives up: "+p.enforcer.left)
	case sched.Ended:
		list = append(list, "ends: "+p.enforcer.left)
	}
	if len(list) == 0 && p.enforcer.Complete() && !p.complete && len(p.schedule.Operations) > 0 {
		p.complete = true
		list = append(list, "complete")
	}
	return list
}
