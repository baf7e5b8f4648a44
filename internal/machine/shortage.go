package machine

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kernel"
)

// shortageText says which request was the first that could not be met for want of
// memory; "": all were.
func (m *Machine) shortageText() string {
	s := m.state.kernel.Shortage()
	if s.Request == "" {
		return ""
	}
	who := fmt.Sprintf("%s (process %d)", s.Program, s.Process)
	if s.Killed {
		return fmt.Sprintf("%s was killed for %s: guest memory is used up; --max-memory allows more", who, s.Request)
	}
	return fmt.Sprintf("%s was refused %s (%s): %s", who, s.Request, unix.ErrnoName(s.Errno), m.boundText(s.Bound))
}

func (m *Machine) boundText(b kernel.MemoryBound) string {
	const gib = 1 << 30
	switch b {
	case kernel.BoundPromise:
		return fmt.Sprintf("one request may be for %d GiB at most, or for --max-memory if that is more",
			kernel.PromiseBytes(m.config.MaxMemory)/gib)
	case kernel.BoundKernel:
		return "what the kernel keeps for programs takes all that it may, an eighth of --max-memory"
	}
	return "guest memory is used up; --max-memory allows more"
}
