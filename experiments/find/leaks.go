package find

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/sharing"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// leaks watches for threads that end, and processes that exit, while the thread owns a mutex of the GNU C
// library. Profiles have found the mutexes.
type leaks struct {
	machine.NoHook
	m       *machine.Machine
	mutexes []arch.Addr
	leaked  arch.Addr // the first mutex that is not released; 0: none
}

// FailureLeak is the class of the failure of a run in which a thread ends that owns a mutex.
const FailureLeak = "leaked lock"

// Prepare implements machine.Hook.
func (l *leaks) Prepare(m *machine.Machine) error {
	l.m = m
	return nil
}

// AfterQuantum implements machine.Hook: it looks at system calls that end a thread.
func (l *leaks) AfterQuantum(t *kernel.Task, stop arch.Stop) {
	if stop.Reason != arch.StopSyscall || len(l.mutexes) == 0 {
		return
	}
	var r arch.Regs
	l.m.CPU().Regs(&r)
	l.check(t, r.GPR[arch.RAX])
}

// check looks for a mutex of a thread that makes a system call.
func (l *leaks) check(t *kernel.Task, number uint64) {
	if l.leaked != 0 || number != unix.SYS_EXIT && number != unix.SYS_EXIT_GROUP {
		return
	}
	for _, at := range l.mutexes {
		var words [mutexWords * 4]byte
		if t.Process().Peek(at, words[:]) != len(words) {
			continue
		}
		state, owner := binary.LittleEndian.Uint32(words[:]), binary.LittleEndian.Uint32(words[mutexOwner*4:])
		if state != 0 && owner == uint32(t.ID()) {
			l.leaked = at
			return
		}
	}
}

// A pthread_mutex_t begins with words of 32 bits: its state, a count, and the thread that owns it.
const (
	mutexOwner = 2
	mutexWords = 3
)

// isMutexFunction reports whether a function of the C library locks or unlocks a mutex whose address is that
// of the word that it changes.
func isMutexFunction(name string) bool {
	name = strings.TrimLeft(name, "_")
	return strings.HasPrefix(name, "pthread_mutex_lock") || strings.HasPrefix(name, "pthread_mutex_trylock") ||
		strings.HasPrefix(name, "pthread_mutex_unlock") || strings.HasPrefix(name, "pthread_mutex_timedlock")
}

// noteMutexes adds the mutexes among the words that instructions with a LOCK prefix change.
func (s *search) noteMutexes(found *profile) {
	for n, cell := range found.cells {
		at := arch.Addr(n<<16>>16) * sharing.CellSize
		if slices.Contains(s.mutexes, at) {
			continue
		}
		for pc, kind := range cell.by {
			if kind&locked != 0 && isMutexFunction(s.profiler.functionAt(pc)) {
				s.mutexes = append(s.mutexes, at)
				break
			}
		}
	}
	slices.Sort(s.mutexes)
}

// nameMutex names a mutex by its variable, if it is one of the program.
func (s *search) nameMutex(at arch.Addr) string {
	if v, _ := s.profiler.openFile(s.profiler.executable).VariableAt(uint64(at) - s.profiler.bias); v != nil {
		return v.Name()
	}
	return fmt.Sprintf("%#x", uint64(at))
}
