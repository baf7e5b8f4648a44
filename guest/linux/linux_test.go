package linux

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNumbers compares names and numbers with the header of the host.
func TestNumbers(t *testing.T) {
	f, err := os.Open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
	if err != nil {
		t.Skip("no header with the numbers of system calls: ", err)
	}
	defer f.Close()
	define := regexp.MustCompile(`^#define __NR_(\w+) (\d+)$`)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := define.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		number, _ := strconv.ParseUint(m[2], 10, 64)
		if number <= table[len(table)-1].Number && Name(number) != m[1] {
			t.Errorf("%d is %q, and %q in the header", number, Name(number), m[1])
		}
	}
}

// TestTableIsSorted: the numbers grow, and no name is there twice.
func TestTableIsSorted(t *testing.T) {
	if !slices.IsSortedFunc(table, func(a, b Call) int { return int(a.Number) - int(b.Number) }) {
		t.Error("the table is not sorted by number")
	}
	if len(byName) != len(table) {
		t.Errorf("%d names for %d calls", len(byName), len(table))
	}
}

// TestPrototypes: the arguments are as the SYNOPSIS of each manual page has them.
func TestPrototypes(t *testing.T) {
	for text, want := range map[string]string{
		"read":          "fd out len",                // read(2): int fd, void *buf, size_t count
		"pread64":       "fd out len offset",         // pread(2)
		"write":         "fd in len",                 // write(2)
		"open":          "path flags mode",           // open(2)
		"futex":         "- - - - - -",               // futex(2): six arguments
		"exit_group":    "-",                         // exit_group(2)
		"getpid":        "",                          // getpid(2)
		"clock_gettime": "- out16",                   // clock_gettime(2): struct timespec
		"gettimeofday":  "out16 out8",                // gettimeofday(2): struct timeval, struct timezone
		"times":         "out32",                     // times(2): four of clock_t
		"nanosleep":     "- left16",                  // nanosleep(2): the remaining time, if a signal came
		"mmap":          "- - flags flags fd offset", // mmap(2)
	} {
		if got := describeArguments(LookupName(text)); got != want {
			t.Errorf("%s has %q, want %q", text, got, want)
		}
	}
}

// describeArguments writes arguments out in the words of TestPrototypes.
func describeArguments(c *Call) string {
	var words []string
	for i, a := range c.Args {
		switch size := strconv.Itoa(a.Size); {
		case a.IsOffset:
			words = append(words, "offset")
		case a.Output == OutputFixed:
			words = append(words, "out"+size)
		case a.Output == OutputLeft:
			words = append(words, "left"+size)
		case a.Output != NoOutput:
			words = append(words, "out")
		case a.Kind == Descriptor:
			words = append(words, "fd")
		case a.Kind == Bytes:
			words = append(words, "in")
		case a.Kind == String:
			words = append(words, "path")
		case a.Kind == Mask:
			words = append(words, "flags")
		case a.Kind == Octal:
			words = append(words, "mode")
		case a.Kind == Number && i > 0 && (c.Args[i-1].Kind == Bytes || c.Args[i-1].Output == OutputResult):
			words = append(words, "len")
		default:
			words = append(words, "-")
		}
	}
	return strings.Join(words, " ")
}

// TestTraits: laws that hold between the traits of a call.
func TestTraits(t *testing.T) {
	for _, c := range table {
		has := func(x Traits) bool { return c.Traits&x != 0 }
		if has(KernelState) && !has(AddressSpace) {
			t.Errorf("%s has KernelState, which says something of calls with AddressSpace only", c.Name)
		}
		if has(Allocates) && !has(AddressSpace) {
			t.Errorf("%s allocates, and does not act on the address space", c.Name)
		}
		if has(Sleeps) && !has(Blocks) {
			t.Errorf("%s sleeps, and does not block", c.Name)
		}
		if has(ThreadLocal|TimeDependent) && has(Forks|EndsThread|Executes) {
			t.Errorf("%s is thread-local, and has an effect that others observe", c.Name)
		}
		if has(TimeDependent) && c.Output() < 0 {
			t.Errorf("%s depends on the time, and the table does not say where it writes it", c.Name)
		}
		if has(BringsInput) && c.Output() < 0 && !has(MapsFile) {
			t.Errorf("%s brings input, and the table does not say where", c.Name)
		}
		if has(MovesData) && (len(c.Args) == 0 || c.Args[0].Kind != Descriptor && c.Args[0].Kind != Word) {
			t.Errorf("%s moves data, and its first argument is no descriptor", c.Name)
		}
	}
	if Has(unix.SYS_GETPID, Blocks|Forks) || !Has(unix.SYS_FUTEX, Blocks) || Has(1<<40, ^Traits(0)) {
		t.Error("Has does not report the traits of a call")
	}
}

func TestUnknownCall(t *testing.T) {
	for _, number := range []uint64{335, 423, 100_000, ^uint64(0)} { // no numbers of x86-64, syscalls(2)
		if Lookup(number) != nil || Name(number) != "" || Arity(number) != MaxArguments {
			t.Errorf("%d is a system call: %v", number, Lookup(number))
		}
	}
	if got := NameOrNumber(335); got != "system call 335" {
		t.Errorf("call 335 is shown as %q", got)
	}
	if got := NameOrNumber(unix.SYS_READ); got != "read" {
		t.Errorf("read is shown as %q", got)
	}
}

// TestArgumentsBy: arguments are found by their kind.
func TestArgumentsBy(t *testing.T) {
	for name, want := range map[string][3]int{ // descriptor, output, offset
		"mmap": {4, -1, 5}, "pread64": {0, 1, 3}, "getrandom": {-1, 0, -1}, "getpid": {-1, -1, -1}, "recvmsg": {0, 1, -1},
	} {
		c := LookupName(name)
		if got := [3]int{c.Descriptor(), c.Output(), c.Offset()}; got != want {
			t.Errorf("%s has its descriptor, output and offset at %v, want %v", name, got, want)
		}
	}
}

// TestResults: results from -4095 to -1 are errors (syscalls(2), intro(2)).
func TestResults(t *testing.T) {
	for _, x := range []struct {
		result uint64
		errno  unix.Errno
		text   string
	}{
		{0, 0, "0"},
		{7, 0, "7"},
		{0x7ffff7ff0000, 0, "0x7ffff7ff0000"},
		{Failure(unix.ENOENT), unix.ENOENT, "-1 ENOENT"},
		{^uint64(0), unix.EPERM, "-1 EPERM"},
		{^uint64(4095), 0, "0xfffffffffffff000"},
		{^uint64(4094), 4095, "-1 "},
	} {
		if got := Errno(x.result); got != x.errno || Failed(x.result) != (x.errno != 0) {
			t.Errorf("%#x has errno %d, want %d", x.result, got, x.errno)
		}
		if got := ResultText(x.result); got != x.text {
			t.Errorf("%#x is shown as %q, want %q", x.result, got, x.text)
		}
	}
}

// TestFutexOperations: each operation of futex(2) either waits or wakes.
func TestFutexOperations(t *testing.T) {
	for op := range uint64(16) {
		known := op <= FutexLockPI2 && op != 2 // FUTEX_FD is gone since Linux 2.6.26
		if waits, wakes := FutexWaits(op), FutexWakes(op); waits && wakes || (waits || wakes) != known {
			t.Errorf("operation %d: waits %v, wakes %v", op, waits, wakes)
		}
	}
}

// TestConstants compares the constants and the errnos' names with those of package unix.
func TestConstants(t *testing.T) {
	for _, x := range [][2]int{
		{RtSigreturn, unix.SYS_RT_SIGRETURN},
		{SchedYield, unix.SYS_SCHED_YIELD},
		{Times, unix.SYS_TIMES},
		{Futex, unix.SYS_FUTEX},
		{ExitGroup, unix.SYS_EXIT_GROUP},
		{SIGILL, int(unix.SIGILL)},
		{SIGTRAP, int(unix.SIGTRAP)},
		{SIGABRT, int(unix.SIGABRT)},
		{SIGBUS, int(unix.SIGBUS)},
		{SIGFPE, int(unix.SIGFPE)},
		{SIGSEGV, int(unix.SIGSEGV)},
		{SIGSYS, int(unix.SIGSYS)},
	} {
		if x[0] != x[1] {
			t.Errorf("%d should be %d", x[0], x[1])
		}
	}
	for errno := range unix.Errno(MaxErrno + 1) {
		if got, want := ErrnoName(errno), unix.ErrnoName(errno); got != want {
			t.Errorf("errno %d is named %q, should be %q", errno, got, want)
		}
	}
}
