package kernel

import (
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// TestScripts runs the scripts in testdata. A script is a list of tests. A test begins with
//
//	test NAME [uid=N] [cores=N]
//
// and has its own guest with one thread, a. Its other lines are
//
//	THREAD: CALL(ARGUMENTS) [EVENTS]   the thread makes a system call
//	THREAD: sigreturn [EVENTS]         it returns from the handler of a signal
//	THREAD: fault read|write|execute ADDRESS [EVENTS]
//	THREAD: exception|interrupt VECTOR [EVENTS]
//	THREAD: burns DURATION [EVENTS]    it runs in user mode for a time
//	THREAD EVENTS                      its events since then, or its state
//	threads NAMES                      thread a makes threads of its process
//	after DURATION                     time passes
//	let NAME = EXPRESSION
//	check EXPRESSION
//	set32 ADDRESS VALUE                writes to memory; also set64
//	view THREAD                        selects the memory of set32 and at32; initially that of a
//	heap THREAD                        maps new memory for data in its process, after an execve
//	done exits N | done SIGNAL | done: the run is over
//
// EVENTS are any of
//
//	= VALUE | = $NAME | = _            the call returns a value, or an error by its name
//	handles SIGNAL | dies SIGNAL       the signal is delivered
//	waits | runs | stopped | traced | gone
//
// A script must name each result and each delivered signal. Expressions are Go's, over unsigned
// words; their names are Linux's constants, the threads, whose values are their ids, and the functions
// of scriptFunctions. A string or bytes as an argument is put into memory, and its address is passed.
// A line that begins with "#" is a comment: the manual page that states the expected result.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			var s *script
			end := func() {
				if s != nil {
					s.finish()
				}
			}
			for n, line := range strings.Split(string(text), "\n") {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if rest, begins := strings.CutPrefix(line, "test "); begins {
					end()
					s = newScript(t, fmt.Sprintf("%s:%d", file, n+1), strings.Fields(rest))
					continue
				}
				s.at = fmt.Sprintf("%s:%d", file, n+1)
				s.line(line)
			}
			end()
		})
	}
}

// script is a running test.
type script struct {
	*guest
	name   string
	at     string // file and line
	vars   map[string]uint64
	heap   uint64 // the address of the next data
	viewed arch.ThreadID
	actor  *Process // whose memory gets the next arguments
	failed bool
}

const scriptHeap = 1 << 20

func newScript(t *testing.T, at string, words []string) *script {
	o := guestOptions{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		switch {
		case err == nil && key == "uid":
			o.uid = uint32(n)
		case err == nil && key == "cores":
			o.cores = n
		default:
			t.Fatalf("%s: unknown option %q", at, w)
		}
	}
	s := &script{guest: newGuest(t, o), name: words[0], at: at, vars: map[string]uint64{"a": firstID}}
	s.viewed = firstID
	s.newHeap(s.first())
	return s
}

func (s *script) newHeap(t *Task) {
	s.call(t, unix.SYS_MMAP, 0, scriptHeap, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	s.heap = s.popResult(t.id)
}

func (s *script) errorf(format string, args ...any) {
	s.failed = true
	s.t.Errorf("%s (%s): %s", s.at, s.name, fmt.Sprintf(format, args...))
}

// finish checks that the test has named all events.
func (s *script) finish() {
	if s.failed {
		return
	}
	for id, x := range s.threads {
		for _, r := range x.results {
			s.errorf("thread %s: a call has returned %s, and the test does not say so", s.threadName(id), linux.ResultText(r))
		}
		for _, d := range x.deliveries {
			s.errorf("thread %s has got %s, and the test does not say so", s.threadName(id), unix.SignalName(unix.Signal(d.Signal)))
		}
	}
	if s.k.Fatal() != "" {
		s.errorf("the run has ended: %s", s.k.Fatal())
	}
}

func (s *script) threadName(id arch.ThreadID) string {
	for name, v := range s.vars {
		if v == uint64(id) {
			return name
		}
	}
	return strconv.Itoa(int(id))
}

// line executes a line of a script.
func (s *script) line(line string) {
	if s.failed {
		return
	}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "threads":
		for _, name := range strings.Fields(rest) {
			s.makeThread(name)
		}
		return
	case "after":
		s.pass(s.duration(rest))
		return
	case "let":
		name, e, _ := strings.Cut(rest, " = ")
		s.vars[name] = s.word(e)
		return
	case "check":
		if s.word(rest) == 0 {
			s.errorf("%s does not hold: %s", rest, s.explain(rest))
		}
		return
	case "set32", "set64":
		at, value, _ := strings.Cut(rest, " ")
		size := map[string]int{"set32": 4, "set64": 8}[word]
		b := make([]byte, 8)
		binary.LittleEndian.PutUint64(b, s.word(value))
		s.poke(s.word(at), b[:size])
		s.run()
		return
	case "view":
		s.viewed = arch.ThreadID(s.word(rest))
		return
	case "heap":
		s.viewed = arch.ThreadID(s.word(rest))
		s.newHeap(s.thread(rest))
		return
	case "done":
		s.checkDone(strings.TrimSpace(rest))
		return
	}
	if name, named := strings.CutSuffix(word, ":"); named {
		s.act(s.thread(name), rest)
		return
	}
	s.events(arch.ThreadID(s.word(word)), rest)
}

func (s *script) duration(text string) int64 {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatalf("%s: %v", s.at, err)
	}
	return int64(d)
}

// thread finds a thread, which must be in user mode.
func (s *script) thread(name string) *Task {
	t := s.k.Task(arch.ThreadID(s.word(name)))
	if t == nil || t.state != running || t.call.active {
		s.t.Fatalf("%s: thread %s cannot do anything: %s", s.at, name, s.where(arch.ThreadID(s.word(name))))
	}
	return t
}

func (s *script) makeThread(name string) {
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM
	stack := s.put(make([]byte, 8192)) + 8192
	s.call(s.thread("a"), unix.SYS_CLONE, flags, stack)
	s.vars[name] = s.popResult(firstID)
}

// act executes the action of a thread.
func (s *script) act(t *Task, text string) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "sigreturn":
		s.sigreturn(t)
		s.events(t.id, rest)
		return
	case "fault":
		kind, after, _ := strings.Cut(rest, " ")
		at, after, _ := strings.Cut(after, " ")
		access := map[string]arch.Access{"read": arch.AccessRead, "write": arch.AccessWrite, "execute": arch.AccessFetch}[kind]
		t.Load()
		s.stop(t, s.cpu.Fault(access, arch.Addr(s.word(at))))
		s.events(t.id, after)
		return
	case "exception", "interrupt":
		vector, after, _ := strings.Cut(rest, " ")
		t.Load()
		if n := uint8(s.word(vector)); word == "interrupt" {
			s.stop(t, s.cpu.Interrupt(n))
		} else {
			s.stop(t, s.cpu.Exception(n))
		}
		s.events(t.id, after)
		return
	case "burns":
		d, after, _ := strings.Cut(rest, " ")
		s.burn(t, s.duration(d))
		s.events(t.id, after)
		return
	}
	end := closingParenthesis(text)
	name, arguments, ok := strings.Cut(text[:end], "(")
	c := linux.LookupName(name)
	if !ok || c == nil {
		s.t.Fatalf("%s: no system call in %q", s.at, text)
	}
	s.actor = t.proc
	call := s.parse("f(" + arguments + ")").(*ast.CallExpr)
	var args []uint64
	for _, e := range call.Args {
		args = append(args, s.argument(s.value(e)))
	}
	s.call(t, c.Number, args...)
	s.events(t.id, strings.TrimSpace(text[end+1:]))
}

// closingParenthesis is where the first parenthesis of a text is closed.
func closingParenthesis(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text) - 1
}

// events checks the events of a thread.
func (s *script) events(id arch.ThreadID, text string) {
	words := strings.Fields(text)
	for len(words) > 0 && !s.failed {
		x := s.log(id)
		switch word := words[0]; word {
		case "=":
			if len(x.results) == 0 {
				s.errorf("no call has returned: the thread is %s, %v", s.where(id), s.signalsOf(x))
				return
			}
			s.checkResult(s.popResult(id), strings.TrimPrefix(words[1], " "))
			words = words[2:]
			continue
		case "handles", "dies":
			if len(x.deliveries) == 0 {
				s.errorf("no signal was delivered: the thread is %s", s.where(id))
				return
			}
			d := x.deliveries[0]
			x.deliveries = x.deliveries[1:]
			if got := uint64(d.Signal); got != s.word(words[1]) {
				s.errorf("signal %d %s was delivered, want %s", got, unix.SignalName(unix.Signal(got)), words[1])
			}
			if t := s.k.Task(id); word == "handles" && t != nil && len(x.deliveries) == 0 && t.currentRegs().RIP != handlerAddr {
				s.errorf("the thread is at %#x, not in the handler", t.currentRegs().RIP)
			}
			words = words[2:]
			continue
		default:
			if got := s.where(id); got != word {
				s.errorf("the thread is %q, want %q", got, word)
			}
		}
		words = words[1:]
	}
}

func (s *script) signalsOf(x *threadLog) (list []string) {
	for _, d := range x.deliveries {
		list = append(list, unix.SignalName(unix.Signal(d.Signal)))
	}
	return list
}

// where is the state of a thread.
func (s *script) where(id arch.ThreadID) string {
	t := s.k.Task(id)
	switch {
	case t == nil || t.state == dead:
		return "gone"
	case t.state == blocked:
		return "waits"
	case t.state == stopped:
		return "stopped"
	case t.state == traced:
		return "traced"
	}
	return "runs"
}

func (s *script) popResult(id arch.ThreadID) uint64 {
	x := s.log(id)
	r := x.results[0]
	x.results = x.results[1:]
	return r
}

func (s *script) checkResult(got uint64, want string) {
	if want == "_" {
		return
	}
	if name, binds := strings.CutPrefix(want, "$"); binds {
		s.vars[name] = got
		if linux.Failed(got) {
			s.errorf("the call fails with %s", linux.ResultText(got))
		}
		return
	}
	v := s.word(want)
	if errnoNames()[want] {
		v = -v
	}
	if v != got && !(got < 1<<32 && uint32(v) == uint32(got) && !linux.Failed(v)) {
		s.errorf("the result is %s, want %s", linux.ResultText(got), want)
	}
}

func (s *script) checkDone(want string) {
	if !s.k.Done() {
		s.errorf("the run is not over")
		return
	}
	code, signal := s.k.Status()
	got := fmt.Sprintf("exits %d", code)
	if signal != 0 {
		got = unix.SignalName(unix.Signal(signal))
	}
	if got != want {
		s.errorf("the program has ended by %s, want %s", got, want)
	}
}

// put stores bytes in memory, also in that of the acting process, and returns their address.
func (s *script) put(b []byte) uint64 {
	at := s.heap
	s.heap += uint64(len(b)+15) &^ 15
	s.poke(at, b)
	if p := s.actor; p != nil && p != s.process() && p.space != nil {
		_ = p.space.CopyOut(arch.Addr(at), b)
	}
	return at
}

// process is the process whose memory the script reads and writes.
func (s *script) process() *Process {
	if t := s.k.Task(s.viewed); t != nil {
		return t.proc
	}
	s.t.Fatalf("%s: the process whose memory is looked at is gone", s.at)
	return nil
}

func (s *script) poke(at uint64, b []byte) {
	if len(b) == 0 {
		return
	}
	if errno := s.process().space.CopyOut(arch.Addr(at), b); errno != 0 {
		s.t.Fatalf("%s: nothing can be written at %#x: %v", s.at, at, errno)
	}
}

func (s *script) peek(at uint64, size int) []byte {
	b := make([]byte, size)
	if n := s.process().space.Peek(arch.Addr(at), b); n < size {
		s.t.Fatalf("%s: no memory at %#x", s.at, at)
	}
	return b
}

// Expressions.

func (s *script) parse(text string) ast.Expr {
	e, err := parser.ParseExpr(text)
	if err != nil {
		s.t.Fatalf("%s: %q: %v", s.at, text, err)
	}
	return e
}

// word is the value of a numeric expression.
func (s *script) word(text string) uint64 { return s.argument(s.value(s.parse(text))) }

// argument is a value as an argument of a system call.
func (s *script) argument(v any) uint64 {
	switch v := v.(type) {
	case uint64:
		return v
	case string:
		return s.put([]byte(v + "\x00"))
	case []byte:
		return s.put(v)
	}
	panic("bug: a value of another type")
}

// value evaluates an expression: a word, a string or bytes.
func (s *script) value(e ast.Expr) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.value(e.X)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
		n, err := strconv.ParseUint(e.Value, 0, 64)
		if err != nil {
			s.t.Fatalf("%s: %v", s.at, err)
		}
		return n
	case *ast.Ident:
		return s.named(e.Name)
	case *ast.UnaryExpr:
		v := s.value(e.X).(uint64)
		switch e.Op {
		case token.SUB:
			return -v
		case token.XOR:
			return ^v
		case token.NOT:
			return boolWord(v == 0)
		}
	case *ast.BinaryExpr:
		return s.binary(e)
	case *ast.CallExpr:
		f := scriptFunctions[e.Fun.(*ast.Ident).Name]
		if f == nil {
			s.t.Fatalf("%s: no function %s", s.at, e.Fun.(*ast.Ident).Name)
		}
		var args []any
		for _, a := range e.Args {
			args = append(args, s.value(a))
		}
		return f(s, args)
	}
	s.t.Fatalf("%s: unknown kind of expression", s.at)
	return nil
}

func (s *script) named(name string) uint64 {
	if v, ok := s.vars[name]; ok {
		return v
	}
	if v, ok := scriptConstants()[name]; ok {
		return v
	}
	s.t.Fatalf("%s: no name %s", s.at, name)
	return 0
}

func (s *script) binary(e *ast.BinaryExpr) any {
	left, right := s.value(e.X), s.value(e.Y)
	if text, is := left.(string); is && e.Op == token.EQL {
		return boolWord(text == right.(string))
	}
	x, y := left.(uint64), right.(uint64)
	switch e.Op {
	case token.ADD:
		return x + y
	case token.SUB:
		return x - y
	case token.MUL:
		return x * y
	case token.OR:
		return x | y
	case token.AND:
		return x & y
	case token.SHL:
		return x << y
	case token.SHR:
		return x >> y
	case token.EQL:
		return boolWord(x == y)
	case token.NEQ:
		return boolWord(x != y)
	case token.LSS:
		return boolWord(x < y)
	case token.GTR:
		return boolWord(x > y)
	case token.GEQ:
		return boolWord(x >= y)
	case token.LEQ:
		return boolWord(x <= y)
	case token.LAND:
		return boolWord(x != 0 && y != 0)
	}
	s.t.Fatalf("%s: unknown operator %s", s.at, e.Op)
	return nil
}

// explain shows the sides of a comparison.
func (s *script) explain(text string) string {
	b, ok := s.parse(text).(*ast.BinaryExpr)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%#x and %#x", s.value(b.X), s.value(b.Y))
}

func boolWord(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// scriptFunctions are the functions of expressions.
var scriptFunctions map[string]func(s *script, args []any) any

func init() {
	scriptFunctions = map[string]func(s *script, args []any) any{
		// u8, u16, u32 and u64 are numbers one after the other.
		"u8": packed(1), "u16": packed(2), "u32": packed(4), "u64": packed(8),
		// cat is bytes one after the other; a string has no zero at its end.
		"cat": func(_ *script, args []any) any {
			var b []byte
			for _, a := range args {
				if text, is := a.(string); is {
					b = append(b, text...)
				} else {
					b = append(b, a.([]byte)...)
				}
			}
			return b
		},
		// zeros(n) is n zero bytes, and buf(n) stores them in memory.
		"zeros": func(_ *script, args []any) any { return make([]byte, args[0].(uint64)) },
		"buf":   func(s *script, args []any) any { return s.put(make([]byte, args[0].(uint64))) },
		// ptr stores a value in memory.
		"ptr": func(s *script, args []any) any { return s.argument(args[0]) },
		// at8 to at64 read memory, text reads a string, and bytes(a, n) reads n bytes.
		"at8": loaded(1), "at16": loaded(2), "at32": loaded(4), "at64": loaded(8),
		"text": func(s *script, args []any) any {
			b := make([]byte, 256)
			b = b[:s.process().space.Peek(arch.Addr(args[0].(uint64)), b)]
			text, _, _ := strings.Cut(string(b), "\x00")
			return text
		},
		"bytes": func(s *script, args []any) any { return string(s.peek(args[0].(uint64), int(args[1].(uint64)))) },
		// ts is a struct timespec, or a struct timeval.
		"ts": packed(8),
		// set is a set of signals (sigset_t).
		"set": func(_ *script, args []any) any {
			var bits uint64
			for _, a := range args {
				bits |= 1 << (a.(uint64) - 1)
			}
			return binary.LittleEndian.AppendUint64(nil, bits)
		},
		// action is a struct sigaction of the kernel, with a handler, flags, and signals that it blocks.
		"action": func(_ *script, args []any) any {
			var mask uint64
			for _, a := range args[2:] {
				mask |= 1 << (a.(uint64) - 1)
			}
			var b []byte
			for _, w := range []uint64{args[0].(uint64), args[1].(uint64) | saRestorer, restorer, mask} {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
			return b
		},
		// info is 32 bits at an offset of the siginfo_t of the signal whose handler a thread is in.
		"info": func(s *script, args []any) any {
			t := s.k.Task(arch.ThreadID(args[0].(uint64)))
			at := t.currentRegs().GPR[arch.RSI] + args[1].(uint64)
			b := make([]byte, 4)
			t.proc.space.Peek(arch.Addr(at), b)
			return uint64(binary.LittleEndian.Uint32(b))
		},
		// reg is a register of a thread, by its number in the encoding; 16 is RIP.
		"reg": func(s *script, args []any) any {
			r := s.k.Task(arch.ThreadID(args[0].(uint64))).currentRegs()
			if n := args[1].(uint64); n < 16 {
				return r.GPR[n]
			}
			return r.RIP
		},
		// now is the monotonic clock in nanoseconds since the start of the run.
		"now": func(s *script, _ []any) any { return uint64(s.k.Now()) },
		// output is the standard output of the guest.
		"output": func(s *script, _ []any) any { return string(s.stdout) },
	}
}

func packed(size int) func(*script, []any) any {
	return func(s *script, args []any) any {
		var b []byte
		for _, a := range args {
			w := binary.LittleEndian.AppendUint64(nil, s.argument(a))
			b = append(b, w[:size]...)
		}
		return b
	}
}

func loaded(size int) func(*script, []any) any {
	return func(s *script, args []any) any {
		b := append(s.peek(args[0].(uint64), size), make([]byte, 8)...)
		return binary.LittleEndian.Uint64(b)
	}
}

// Names.

// moreConstants are constants that golang.org/x/sys/unix does not define.
var moreConstants = map[string]uint64{
	"HANDLER": handlerAddr, "CODE": codeStart, "INIT": initID, "PARENT": parentID, "NULL": 0,
	"SIG_DFL": sigDfl, "SIG_IGN": sigIgn, // signal.h
	"SA_RESTART": saRestart, "SA_SIGINFO": saSiginfo, "SA_ONSTACK": saOnStack, "SA_NODEFER": saNoDefer,
	"SA_RESETHAND": saResetHand, "SA_NOCLDSTOP": saNoCldStop, "SA_NOCLDWAIT": saNoCldWait,
	"SIG_BLOCK": 0, "SIG_UNBLOCK": 1, "SIG_SETMASK": 2, "SIGRTMIN": 32,
	"SS_ONSTACK": 1, "SS_DISABLE": 2,
	// linux/futex.h
	"FUTEX_WAIT": linux.FutexWait, "FUTEX_WAKE": linux.FutexWake, "FUTEX_REQUEUE": linux.FutexRequeue,
	"FUTEX_CMP_REQUEUE": linux.FutexCmpRequeue, "FUTEX_WAKE_OP": linux.FutexWakeOp, "FUTEX_LOCK_PI": linux.FutexLockPI,
	"FUTEX_UNLOCK_PI": linux.FutexUnlockPI, "FUTEX_TRYLOCK_PI": linux.FutexTrylockPI, "FUTEX_WAIT_BITSET": linux.FutexWaitBitset,
	"FUTEX_WAKE_BITSET": linux.FutexWakeBitset, "FUTEX_WAIT_REQUEUE_PI": linux.FutexWaitRequeuePI,
	"FUTEX_CMP_REQUEUE_PI": linux.FutexCmpRequeuePI, "FUTEX_LOCK_PI2": linux.FutexLockPI2,
	"FUTEX_PRIVATE_FLAG": linux.FutexPrivate, "FUTEX_CLOCK_REALTIME": linux.FutexRealtime, "FUTEX_FD": 2,
	"FUTEX_WAITERS": linux.FutexWaiters, "FUTEX_OWNER_DIED": linux.FutexOwnerDied, "FUTEX_TID_MASK": linux.FutexThread,
	"INT_MAX": math.MaxInt32, "CLD_EXITED": 1, "CLD_KILLED": 2, "CLD_TRAPPED": 4, "CLD_STOPPED": 5, "CLD_CONTINUED": 6,
	"SI_USER": 0, "SI_KERNEL": 0x80, "SI_QUEUE": 1<<32 - 1, "SI_TIMER": 1<<32 - 2, "SI_TKILL": 1<<32 - 6, "SI_MESGQ": 1<<32 - 3,
	"IPC_PRIVATE": 0, "IPC_CREAT": 0o1000, "IPC_EXCL": 0o2000, "IPC_NOWAIT": 0o4000, "IPC_RMID": 0, "IPC_SET": 1, "IPC_STAT": 2, "IPC_INFO": 3, // linux/ipc.h
	"SEM_UNDO": 0x1000, "GETPID": 11, "GETVAL": 12, "GETALL": 13, "GETNCNT": 14, "GETZCNT": 15, "SETVAL": 16, "SETALL": 17, // linux/sem.h
	"MSG_NOERROR": 0o10000, "MSG_EXCEPT": 0o20000, // linux/msg.h
	"SHM_RDONLY": 0o10000, "SHM_EXEC": 0o100000, "SHM_REMAP": 0o40000, "SHM_RND": 0o20000,
	"SIGEV_SIGNAL": 0, "SIGEV_NONE": 1, "SIGEV_THREAD": 2, "SIGEV_THREAD_ID": 4, "TIMER_ABSTIME": 1,
	"ARCH_SET_FS": linux.ArchSetFS, "ARCH_GET_FS": linux.ArchGetFS, "ARCH_SET_GS": linux.ArchSetGS, "ARCH_GET_GS": linux.ArchGetGS,
	"FIONREAD": 0x541b, "FIONBIO": 0x5421, "FIOASYNC": 0x5452, "FIOCLEX": 0x5451, "FIONCLEX": 0x5450, // asm-generic/ioctls.h
	"PRIO_PGRP": 1, "SCHED_OTHER": 0, "SCHED_FIFO": 1, "SCHED_RR": 2, "SCHED_BATCH": 3, "SCHED_IDLE": 5, "SCHED_DEADLINE": 6, "SCHED_RESET_ON_FORK": 0x40000000,
}

var (
	constantsOnce sync.Once
	constants     map[string]uint64
	errnos        map[string]bool
)

// scriptConstants are the names of Linux: those of golang.org/x/sys/unix and moreConstants.
func scriptConstants() map[string]uint64 {
	constantsOnce.Do(readConstants)
	return constants
}

func errnoNames() map[string]bool {
	constantsOnce.Do(readConstants)
	return errnos
}

// readConstants reads the constants of golang.org/x/sys/unix from its source.
func readConstants() {
	constants, errnos = map[string]uint64{}, map[string]bool{}
	for name, v := range moreConstants {
		constants[name] = v
	}
	pkg, err := build.Import("golang.org/x/sys/unix", ".", build.FindOnly)
	if err != nil {
		panic(err)
	}
	for _, file := range []string{"zerrors_linux.go", "zerrors_linux_amd64.go", "ztypes_linux.go", "ztypes_linux_amd64.go", "constants.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is {
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						addConstant(name.Name, spec.Values[i])
					}
				}
			}
			return true
		})
	}
}

func addConstant(name string, e ast.Expr) {
	if call, is := e.(*ast.CallExpr); is && len(call.Args) == 1 { // syscall.Errno(0x7)
		if f, is := call.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Errno" {
			errnos[name] = true
		}
		e = call.Args[0]
	}
	negative := false
	if u, is := e.(*ast.UnaryExpr); is && u.Op == token.SUB {
		negative, e = true, u.X
	}
	lit, is := e.(*ast.BasicLit)
	if !is || lit.Kind != token.INT {
		return
	}
	v, exact := constant.Uint64Val(constant.MakeFromLiteral(lit.Value, lit.Kind, 0))
	if _, known := constants[name]; known || !exact {
		return
	}
	if negative {
		v = -v
	}
	constants[name] = v
}
