package symtrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/search"
)

// Numbers that main's first two descriptors get.
const readEnd, writeEnd = firstDescriptor, firstDescriptor + 1

// call is a system call in assembler.
func call(number, first, second, third int) string {
	return fmt.Sprintf("mov eax, %d\nmov edi, %d\nmov esi, %d\nmov edx, %d\nsyscall\n", number, first, second, third)
}

// piping is a program whose main makes a pipe, sends through it, waits for the other
// thread and fails if a number in memory is a certain one; the other thread receives.
func piping(sends, receives string, at, value int) string {
	return "call create\n" + call(unix.SYS_PIPE, data+0x40, 0, 0) + sends + fmt.Sprintf(`
	mov rdi, [0x600010]
	xor esi, esi
	call join
	cmp dword ptr [%d], %d
	jne good
	mov edi, 0x600020
	call fail
good:
	ret
	.org 0x100
	push rdi
	%s
	pop rdi
	ret
	.org 0x200
create:
	ret
	.org 0x210
join:
	ret
	.org 0x220
fail:
	ret
	.org 0x240
other:
	ret
	.org 0x300
	nop
	ret
`, at, value, receives)
}

// followed is the trace of a program whose main reached its failure, and whose other thread took
// branches or not.
func followed(t *testing.T, source string, taken ...bool) (*Result, error) {
	t.Helper()
	p := newProgram(t, source)
	p.thread(1, create, []uint64{behindCreate}, false)
	p.thread(2, worker, []uint64{behindWorker}, taken...)
	return Build(p.image, p.profile, 1, 0, Options{})
}

// can reports whether main can reach its failure.
func can(t *testing.T, source string, taken ...bool) bool {
	t.Helper()
	r, err := followed(t, source, taken...)
	if err != nil {
		return false // there is no way along the paths
	}
	a := search.Search(r.Trace, model.SC, search.Options{}).Answer
	if a == search.Limit {
		t.Fatal("the search has come to no end")
	}
	return a == search.Found
}

// Two pieces of two bytes each are received as pipe(7) says: one of them, or both if they are
// there, never a part of one if more is wanted; and the end, if the pipe is closed, after all
// bytes. The branch after the call shows how many bytes it was.
func TestWhatIsReceived(t *testing.T) {
	piece := func(at int) string { return call(unix.SYS_WRITE, writeEnd, data+at, 2) }
	receive := func(size, got int) string {
		return call(unix.SYS_READ, readEnd, data+0x50, size) + fmt.Sprintf("cmp eax, %d\njne other\n", got)
	}
	two, closed := piece(0x20)+piece(0x22), piece(0x20)+call(unix.SYS_CLOSE, writeEnd, 0, 0)
	for _, c := range []struct {
		name, sends string
		receives    func(n int) string
		possible    []int
	}{
		{"as much as was sent", two, func(n int) string { return receive(4, n) }, []int{2, 4}},
		{"a part of the second piece", two, func(n int) string { return receive(3, n) }, []int{2, 3}},
		{"one piece", two, func(n int) string { return receive(2, n) }, []int{2}},
		{"behind one piece", two, func(n int) string { return receive(2, 2) + receive(4, n) }, []int{2}},
		{"behind a part", two, func(n int) string { return receive(1, 1) + receive(4, n) }, []int{1, 3}},
		{"before the end", closed, func(n int) string { return receive(4, n) }, []int{2}},
		{"the end", closed, func(n int) string { return receive(4, 2) + receive(4, n) }, []int{0}},
	} {
		var found []int
		for n := range 6 {
			if can(t, piping(c.sends, c.receives(n), data+0x60, 0), false, false) {
				found = append(found, n)
			}
		}
		if !slices.Equal(found, c.possible) {
			t.Errorf("%s: %v bytes, expected %v", c.name, found, c.possible)
		}
	}
	for value, possible := range map[int]bool{'i' | 't'<<8: true, ' ' | 'i'<<8: false} {
		if got := can(t, piping(two, receive(2, 2), data+0x50, value), false); got != possible {
			t.Errorf("the first bytes are %#x: %v, expected %v", value, got, possible)
		}
	}
}

// A receive follows its send: main's number, which it writes before it sends and the other thread
// reads after it receives, is the new one.
func TestStreamsOrder(t *testing.T) {
	sends := "mov dword ptr [0x600060], 7\n" + call(unix.SYS_WRITE, writeEnd, data+0x20, 1)
	receives := call(unix.SYS_READ, readEnd, data+0x50, 1) + "mov eax, [0x600060]\nmov [0x600068], eax\n"
	for value, possible := range map[int]bool{0: false, 7: true} {
		if got := can(t, piping(sends, receives, data+0x68, value)); got != possible {
			t.Errorf("after the receive %d is read: %v, expected %v", value, got, possible)
		}
	}
	// Without the stream both are.
	for _, value := range []int{0, 7} {
		if !can(t, piping("mov dword ptr [0x600060], 7\n", "mov eax, [0x600060]\nmov [0x600068], eax\n", data+0x68, value)) {
			t.Errorf("%d cannot be read where nothing orders the threads", value)
		}
	}
}

// A call that is not supported ends the attempt with a sentence.
func TestUnsupportedCalls(t *testing.T) {
	for _, c := range []struct{ name, sends, says string }{
		{"a non-blocking pipe", call(unix.SYS_PIPE2, data+0x40, unix.O_NONBLOCK, 0), "non-blocking pipe"},
		{"a socket of messages", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM, 0), "a socket is created that is not a stream"},
		{"the length of a pipe", call(unix.SYS_FCNTL, writeEnd, unix.F_GETPIPE_SZ, 0), fmt.Sprintf("fcntl is called with the command %d, which is not supported", unix.F_GETPIPE_SZ)},
		{"the place in a pipe", call(unix.SYS_LSEEK, writeEnd, 0, 0), "lseek is called after the second thread was created, which is not supported"},
	} {
		if _, err := followed(t, piping(c.sends, "", data+0x60, 0)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !can(t, piping(call(unix.SYS_FCNTL, writeEnd, unix.F_SETFD, unix.FD_CLOEXEC), "", data+0x60, 0)) {
		t.Error("a descriptor that is closed by exec is not followed")
	}
}
