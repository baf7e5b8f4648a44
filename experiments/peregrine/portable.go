package peregrine

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// descriptorUse finds the descriptors of files that one thread alone reads and writes: how often it
// does so does not matter to the others.
type descriptorUse struct {
	users map[int64]arch.ThreadID
	// shared are descriptors that several threads use, or that several numbers stand for, files
	// the ones that were opened. A number that stands for several files one after the other counts as
	// one.
	shared, files map[int64]bool
	pipes         bool // the numbers of pipes are not known: they are returned in memory
}

// lastStandard is the greatest descriptor of a standard stream.
const lastStandard = 2

// freeDescriptors are those whose transfers have no position in a portable schedule.
func freeDescriptors(r *trace.Reader) ([]int64, error) {
	d := &descriptorUse{users: map[int64]arch.ThreadID{}, shared: map[int64]bool{}, files: map[int64]bool{0: true, 1: true, 2: true}}
	for e, err := range trace.Get[event.Syscall](r, trace.Key{Kind: trace.Syscalls}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		d.noteCall(&e)
	}
	var free []int64
	for _, n := range slices.Sorted(maps.Keys(d.files)) {
		if !d.shared[n] && (n <= lastStandard || !d.pipes) {
			free = append(free, n)
		}
	}
	return free, nil
}

func (d *descriptorUse) noteCall(e *event.Syscall) {
	first, result := int64(int32(e.Args[0])), int64(int32(e.Result))
	switch {
	case e.Phase == event.Enter && enforce.MovesData(e.Number):
		if user, used := d.users[first]; used && user != e.Thread {
			d.shared[first] = true
		}
		d.users[first] = e.Thread
	case e.Phase == event.Enter || result < 0:
	case e.Number == unix.SYS_OPEN || e.Number == unix.SYS_OPENAT || e.Number == unix.SYS_CREAT:
		d.files[result] = true
	case e.Number == unix.SYS_DUP || e.Number == unix.SYS_DUP2 || e.Number == unix.SYS_DUP3 || isDuplicate(e):
		d.shared[first], d.shared[result] = true, true
	case e.Number == unix.SYS_PIPE || e.Number == unix.SYS_PIPE2 || e.Number == unix.SYS_SOCKETPAIR || e.Number == unix.SYS_SOCKET:
		d.pipes = true
	}
}

// isDuplicate reports whether a call of fcntl(2) returns another number for a file.
func isDuplicate(e *event.Syscall) bool {
	return e.Number == unix.SYS_FCNTL && (e.Args[1] == unix.F_DUPFD || e.Args[1] == unix.F_DUPFD_CLOEXEC)
}
