package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testhost"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// debugged is a run of one of Debian's debuggers in a folder with testdata/traced.c.
type debugged struct {
	name    string
	said    func(string) string // rewrites its output, without the differences that are allowed
	command []string
}

var underStrace = []debugged{
	// A thread that joins another waits only if that has not ended yet, and heddle has
	// no restartable sequences.
	{"strace-threads", calls, []string{"strace", "-f", "-e", "trace=!futex,rseq", "./traced", "threads"}},
	{"strace-children", calls, []string{"strace", "-f", "-e", "trace=!rseq", "./traced", "children"}},
	{"strace-filter", calls, []string{
		"strace", "-f", "--seccomp-bpf", "-e", "trace=execve,vfork,fork,clone,wait4,write,kill,clock_nanosleep",
		"-e", "inject=clock_nanosleep:error=EINTR", "./traced", "children",
	}},
	{"strace-shell", calls, shell(`strace -f -o log -e trace=execve,exit_group,chdir sh -c 'cd /; (exit 3); /bin/echo a; exec ls -d etc'; cat log >&2`)},
	{"strace-count", calls, []string{"strace", "-c", "-U", "calls,errors,name", "-S", "name", "-e", "trace=!futex,rseq,mmap", "-f", "./traced", "threads"}},
	{"strace-crash", calls, []string{"strace", "-k", "-e", "trace=none", "./traced", "crash"}},
	// It prints that it is attached before it follows the calls.
	{"strace-attach", calls, attach(
		`strace -e trace=read,write,exit_group -p $pid 2>said & tracer=$!; until grep -qs 'read(0' said; do sleep 0.01; done`,
		`wait $tracer; cat said >&2`,
	)},
}

var underGDB = []debugged{
	{"gdb-threads", frames, gdb(
		"break meet", "run threads", "bt", "info threads", "thread apply all bt", "finish", "next", "continue", "print n",
		"up", "info locals", "delete", "continue",
	)},
	{"gdb-crash", frames, gdb(
		"run crash", "bt", "frame 3", "info locals", "down", "print *n", "x/3i $pc", "info registers rip", "print $_siginfo.si_signo",
		"print $_siginfo._sifields._sigfault.si_addr", "kill",
	)},
	{"gdb-attach", frames, attach(`gdb -batch -nx -d . -p $pid -ex bt -ex 'break printf' -ex 'print total' -ex 'set var total=3' -ex 'detach'`, ``)},
	{"gdb-steps", frames, gdb(
		"break steps", "run steps", watchTotal, "continue", "continue", "info watchpoints", "delete", "tbreak exit", "continue", "stepi 100",
		"info registers rax rcx rdx rsi eflags", "x/2i $pc", "set var total=50", "nexti", "step", "print total", "tbreak memset", "continue",
		"continue",
	)},
	{"gdb-children", frames, gdb(
		"set follow-fork-mode child", "catch fork", "catch syscall exit_group", "run children", "bt", "continue", "continue",
	)},
	{"gdb-signals", frames, gdb(
		"handle SIGUSR1 stop print", "break handle", "run children", "signal 0", "continue", "info signals SIGUSR1", "continue",
	)},
	{"gdb-exec", frames, gdb(
		"catch vfork", "run children", "set follow-fork-mode child", "catch exec", "continue", "info inferiors", "continue",
	)},
}

var underValgrind = []debugged{
	{"valgrind-threads", pids, []string{"valgrind", "--tool=none", "./traced", "threads"}},
	{"valgrind-crash", pids, []string{"valgrind", "--tool=none", "./traced", "crash"}},
	{"valgrind-children", pids, []string{"valgrind", "--tool=none", "--trace-children=yes", "./traced", "children"}},
}

// watchTotal is a command of GDB that takes a hardware watchpoint.
const watchTotal = "watch total"

// natively is the command of the native run, and renames in its output. On a host without
// hardware watchpoints GDB compares the variable after each instruction instead, and calls
// the watchpoint by another name.
func (d debugged) natively(t *testing.T) ([]string, *strings.Replacer) {
	t.Helper()
	at := slices.Index(d.command, watchTotal)
	if at < 0 {
		return d.command, strings.NewReplacer()
	}
	switch has, err := testhost.HasBreakpoints(); {
	case err != nil:
		t.Fatal(err)
	case has:
		return d.command, strings.NewReplacer()
	}
	t.Logf("GDB natively without hardware watchpoints: %s", testhost.NoBreakpoints)
	return slices.Insert(slices.Clone(d.command), at, "set can-use-hw-watchpoints 0", "-ex"),
		strings.NewReplacer("Watchpoint", "Hardware watchpoint", "watchpoint    ", "hw watchpoint ")
}

// gdb is a command that runs the program under GDB.
func gdb(commands ...string) []string {
	line := []string{"gdb", "-batch", "-nx", "-d", "."}
	for _, c := range commands {
		line = append(line, "-ex", c)
	}
	return append(line, "./traced")
}

// attach is a shell script that attaches to the program once it waits for its input, then
// gives it that.
func attach(tracer, after string) []string {
	return shell(`rm -f input ready; mkfifo input; ./traced waits <input & pid=$!
exec 3>input; until [ -e ready ] && grep -q 'State:.S' /proc/$pid/status; do sleep 0.01; done
` + tracer + `
echo line >&3; wait $pid; echo status $?
` + after)
}

// TestDebuggers compares the output of Debian's debuggers about a program under heddle with
// their output natively.
func TestDebuggers(t *testing.T) {
	testsize.SkipQuick(t)
	program := compile(t, "traced", "-O0")
	list := slices.Concat(underStrace, testsize.Sample(underGDB, 4, 0), testsize.Sample(underValgrind, 2, 0))
	for i, d := range list {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			tool, _, _ := strings.Cut(d.name, "-")
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("%s is not installed: see internal/setup/packages.txt", tool)
			}
			inspect := func(o outcome, dir string) string {
				o.stderr, _, _ = strings.Cut(o.stderr, "heddle: killed by signal")
				o.stderr = strings.ReplaceAll(o.stderr, dir, "FOLDER")
				return fmt.Sprintf("status %d\nstdout:\n%s\nstderr:\n%s", o.status, d.said(o.stdout), d.said(o.stderr))
			}
			folder := func() string {
				dir := t.TempDir()
				for _, file := range []string{program, "testdata/traced.c"} {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					writeFile(t, filepath.Join(dir, filepath.Base(file)), text, 0o755)
				}
				return dir
			}
			dir := folder()
			line, rename := d.natively(t)
			want := rename.Replace(inspect(execute(t, dir, nil, line...), dir))
			for _, flags := range configurations(i) {
				dir := folder()
				if got := inspect(run(t, dir, append(flags, "--quiet"), d.command...), dir); got != want {
					t.Errorf("heddle %v:\n%s", flags, difference(t, want, got))
				}
			}
		})
	}
}

// difference shows how two texts differ.
func difference(t *testing.T, native, heddle string) string {
	t.Helper()
	dir := t.TempDir()
	a, b := writeFile(t, dir+"/native", []byte(native), 0o644), writeFile(t, dir+"/heddle", []byte(heddle), 0o644)
	text, err := exec.Command("diff", "-u", a, b).CombinedOutput()
	if len(text) == 0 {
		t.Fatal(err)
	}
	return string(text)
}

var (
	address = regexp.MustCompile(`0x[0-9a-fA-F]+`)
	// processes are ids of processes or threads, where debuggers print them.
	processes = []*regexp.Regexp{
		regexp.MustCompile(`((?:[Pp]rocess |si_pid=|parent_tid=\[|LWP |(?m:^)==|\b(?:kill|wait4)\())([0-9]+)\b`),
		regexp.MustCompile(`(\b(?:getpid|gettid|set_tid_address|v?fork|clone3?|wait4)\(.*\) = )([0-9]+)\b`),
	}
)

// pids replaces addresses, and the ids of processes by the order in which they are printed.
func pids(text string) string { return numbered(text, nil) }

// numbered replaces addresses, and the ids of processes by their places in a list, to which
// it appends ids in the order in which they are printed. An empty id in the list is one that
// is not known yet, and becomes the first that is not in the list.
func numbered(text string, known []string) string {
	text = address.ReplaceAllString(text, "ADDRESS")
	for _, place := range processes {
		text = place.ReplaceAllStringFunc(text, func(s string) string {
			m := place.FindStringSubmatch(s)
			n := slices.Index(known, m[2])
			if n < 0 {
				n = slices.Index(known, "")
			}
			if n < 0 {
				n = len(known)
				known = append(known, "")
			}
			known[n] = m[2]
			return fmt.Sprintf("%sP%d", m[1], n)
		})
	}
	return text
}

var (
	attached   = regexp.MustCompile(`strace: Process ([0-9]+) attached\n`)
	ofProcess  = regexp.MustCompile(`^(?:\[pid +([0-9]+)\] |([0-9]+) +)`)
	unfinished = " <unfinished ...>"
	resumed    = regexp.MustCompile(`^<\.\.\. \w+ resumed>`)
	aligned    = regexp.MustCompile(` += `)
	random     = regexp.MustCompile(`(getrandom\(")[^"]*`)
	// spent is the processor time of a child, which strace also gives in seconds unless it is 0.
	spent = regexp.MustCompile(`(si_[us]time=)[0-9]+(?: /\* [0-9.]+ s \*/)?`)
	// reserved is memory of the dynamic loader, which natively describes the vDSO too.
	reserved = regexp.MustCompile(`^mmap\(NULL, [0-9]+, PROT_READ\|PROT_WRITE, MAP_PRIVATE\|MAP_ANONYMOUS, -1, 0\)`)
)

// straced is a thread in the output of strace.
type straced struct {
	id             string // empty until it is printed, if it is
	calls, signals []string
	begun          string // of a call that is not finished
	over           bool
}

// strace is its output, by threads: how those take turns depends on the host.
type strace struct {
	threads []*straced
}

// find returns the thread of an id, or the only one that is left.
func (s *strace) find(id string) *straced {
	i := slices.IndexFunc(s.threads, func(t *straced) bool { return t.id == id && id != "" || id == "" && !t.over })
	switch {
	case i >= 0:
		return s.threads[i]
	case s.threads[0].id == "":
		s.threads[0].id = id
		return s.threads[0]
	}
	s.threads = append(s.threads, &straced{id: id})
	return s.threads[len(s.threads)-1]
}

// add takes a line.
func (t *straced) add(line string) {
	if t == nil {
		return
	}
	if rest, cut := strings.CutSuffix(line, unfinished); cut {
		t.begun = rest
		return
	}
	if m := resumed.FindString(line); m != "" {
		line, t.begun = t.begun+line[len(m):], ""
	}
	line = aligned.ReplaceAllString(line, " = ")
	switch {
	case reserved.MatchString(line):
	case strings.HasPrefix(line, "--- "):
		t.signals = append(t.signals, spent.ReplaceAllString(line, "${1}0"))
	default:
		t.over = t.over || strings.HasPrefix(line, "+++ ")
		t.calls = append(t.calls, random.ReplaceAllString(line, "${1}..."))
	}
}

// calls lists the output of strace thread by thread, first the calls and then the signals,
// which come at a time of their own.
func calls(text string) string {
	const mark = "\x00"
	s := strace{threads: []*straced{{}}}
	for line := range strings.Lines(attached.ReplaceAllString(text, mark+"$1"+mark)) {
		line = strings.TrimSuffix(line, "\n")
		parts := strings.Split(line, mark)
		for i := 1; i < len(parts); i += 2 {
			s.threads = append(s.threads, &straced{id: parts[i]})
			parts[i] = ""
		}
		line = strings.Join(parts, "")
		id := ""
		if m := ofProcess.FindStringSubmatch(line); m != nil {
			id, line = m[1]+m[2], line[len(m[0]):]
		}
		s.find(id).add(line)
	}
	var b strings.Builder
	var ids []string
	for i, t := range s.threads {
		ids = append(ids, t.id)
		fmt.Fprintf(&b, "Process P%d:\n%s\n%s\n", i, strings.Join(t.calls, "\n"), strings.Join(t.signals, "\n"))
	}
	return numbered(b.String(), ids)
}

var (
	// announced is a line that GDB prints when it learns of a thread.
	announced = regexp.MustCompile(`(?m)^\[(New Thread|Thread .* exited).*\]\n`)
	// reborn is a line of GDB about the first thread, sometimes, at the end of the program,
	// after the line that this thread has exited.
	reborn = regexp.MustCompile(`(?m)^\[New process (P[0-9]+)\]\n`)
	// printed is a line of the program, which GDB may run beside one that it no longer traces.
	printed = regexp.MustCompile(`(?m)^(a new program|(status|signal|seen|total|read) [0-9]+)\n`)
	inHold  = regexp.MustCompile(`ADDRESS in (hold )`)
	// ofTable is a line of a table with ids, on whose lengths the places of columns depend.
	ofTable = regexp.MustCompile(`(?m)^.*(Target Id|Connection|LWP P[0-9]+|process P[0-9]+).*$`)
	spaces  = regexp.MustCompile(` +`)
	decimal = regexp.MustCompile(`\b[0-9]{12,}\b`) // addresses in decimal
)

// frames moves to the end the lines about threads and those of the program, and forgets
// where in a loop a thread is.
func frames(text string) string {
	text = decimal.ReplaceAllString(pids(text), "NUMBER")
	text = ofTable.ReplaceAllStringFunc(inHold.ReplaceAllString(text, "$1"), func(line string) string {
		return spaces.ReplaceAllString(line, " ")
	})
	if m := reborn.FindStringSubmatch(text); m != nil {
		text = strings.Replace(text, m[0], "", 1)
		text = strings.Replace(text, fmt.Sprintf("[Thread ADDRESS (LWP %s) exited]\n", m[1]), "", 1)
	}
	lines := announced.FindAllString(text, -1)
	slices.Sort(lines)
	text = announced.ReplaceAllString(text, "")
	lines = append(lines, printed.FindAllString(text, -1)...)
	return printed.ReplaceAllString(text, "") + strings.Join(lines, "")
}
