package symtrace

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// r10 sets the fourth argument of the next system call.
func r10(value int) string { return fmt.Sprintf("mov r10d, %d\n", value) }

// Threads share the content of a file without a name as they share memory: another thread reads the
// old bytes or the new ones, where nothing orders the two.
func TestFilesWithoutNames(t *testing.T) {
	const file = writeEnd + 1
	opened := call(unix.SYS_OPEN, data+0x20, unix.O_TMPFILE|unix.O_RDWR, 0)
	written := func(at int) string { return r10(0) + call(unix.SYS_PWRITE64, file, data+at, 2) }
	read := r10(0) + call(unix.SYS_PREAD64, file, data+0x50, 2)
	const first, second = int('i' | 't'<<8), int('i' | 's'<<8) // of "it is wrong"
	for _, c := range []struct {
		name, sends string
		value       int
		possible    bool
	}{
		{"the first bytes", opened + written(0x20) + written(0x23), first, true},
		{"the second ones", opened + written(0x20) + written(0x23), second, true},
		{"what nobody has written", opened + written(0x20), second, false},
	} {
		if got := can(t, piping(c.sends, read, data+0x50, c.value)); got != c.possible {
			t.Errorf("%s: %v, expected %v", c.name, got, c.possible)
		}
	}
}

// A signal that a thread waits for follows the call that sends it, and is one of those that it
// waits for (sigwaitinfo(2)).
func TestSignalsThatAreWaitedFor(t *testing.T) {
	const set = data + 0x80
	sent := func(n unix.Signal) string {
		return "mov dword ptr [0x600060], 7\n" + call(unix.SYS_KILL, 1, int(n), 0)
	}
	waits := func(n unix.Signal) string {
		return fmt.Sprintf("mov dword ptr [%d], %d\nmov dword ptr [%d], 0\n", set, 1<<(n-1), set+4) + r10(8) + call(unix.SYS_RT_SIGTIMEDWAIT, set, 0, 0)
	}
	number := fmt.Sprintf("cmp eax, %d\njne other\n", unix.SIGUSR1)
	later := "mov eax, [0x600060]\nmov [0x600068], eax\n"
	for _, c := range []struct {
		name            string
		sends, receives string
		value           int
		possible        bool
	}{
		{"behind the signal", sent(unix.SIGUSR1), waits(unix.SIGUSR1) + number + later, 7, true},
		{"before the signal", sent(unix.SIGUSR1), waits(unix.SIGUSR1) + number + later, 0, false},
		{"another signal", sent(unix.SIGUSR2), waits(unix.SIGUSR1) + number + later, 7, false},
		{"two", sent(unix.SIGUSR1) + sent(unix.SIGUSR1), waits(unix.SIGUSR1) + waits(unix.SIGUSR1) + number + later, 7, true},
		{"one for two", sent(unix.SIGUSR1), waits(unix.SIGUSR1) + waits(unix.SIGUSR1) + number + later, 7, false},
	} {
		if got := can(t, piping(c.sends, c.receives, data+0x68, c.value), false); got != c.possible {
			t.Errorf("%s: %v, expected %v", c.name, got, c.possible)
		}
	}
}
