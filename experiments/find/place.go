package find

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// placeOfFailure says where the program fails in the execution that is over: the innermost function of the
// program's own file on the stack of the thread that a signal ended, or on the stacks of all threads that
// wait for ever. It is empty if that is not known.
func (s *stage) placeOfFailure() string {
	if s.m.Outcome() != machine.OutcomeDeadlock {
		return s.describePlace(s.lastPlaces)
	}
	var list []string
	for _, t := range s.m.Kernel().Tasks() {
		var regs arch.Regs
		var fp [arch.FPSize]byte
		t.Registers(&regs, &fp)
		if x := s.describePlace(t.Process().Places(s.unwinder, regs, mostFrames)); x != "" && !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// mostFrames is the number of functions of a stack that are looked at.
const mostFrames = 24

// notePlaces notes the stack of the loaded thread at a stop with which the run may end: a fault, or a system
// call that sends a signal.
func (s *stage) notePlaces(t *kernel.Task, stop arch.Stop, r *arch.Regs) {
	if stop.Reason == arch.StopSyscall && !slices.Contains([]uint64{unix.SYS_TGKILL, unix.SYS_TKILL, unix.SYS_KILL}, r.GPR[arch.RAX]) {
		return
	}
	s.lastPlaces = t.Process().Places(s.unwinder, *r, mostFrames)
}

// describePlace names the innermost place with a known source line of a file that has debug information of its
// own, or the innermost in the program's file, or the innermost of all.
func (s *stage) describePlace(places []loader.Place) string {
	if len(places) == 0 {
		return ""
	}
	best := places[0]
	for i := len(places) - 1; i >= 0; i-- {
		if places[i].Path != "" && places[i].Path == s.executable {
			best = places[i]
		}
	}
	for _, p := range places {
		if file := s.openFile(p.Path); file.HasOwnLines() {
			if line, known := file.SourceLine(p.Addr); known {
				return line + " (" + p.Function + ")"
			}
		}
	}
	if best.Function == "" && best.Path != "" {
		return fmt.Sprintf("%s+%#x", path.Base(best.Path), best.Addr)
	}
	return best.Function
}

// openFile opens a file of the guest for its debug information; one that cannot be read has none.
func (s *stage) openFile(path string) *debuginfo.File {
	f := s.files[path]
	if f == nil {
		var err error
		if f, err = debuginfo.Open(filepath.Join(s.root, path)); err != nil || path == "" {
			f = &debuginfo.File{}
		}
		s.files[path] = f
	}
	return f
}
