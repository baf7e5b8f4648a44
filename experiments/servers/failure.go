package servers

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/heddle-dmt/heddle/internal/machine"
)

// Failure is a sentence on a run of the server that has ended with another status than 0. Its
// script's last line on standard error has the reason.
func (s *Server) Failure(r *machine.Result, stderr []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(stderr)), "\n")
	last := lines[len(lines)-1]
	switch {
	case r.Outcome != machine.OutcomeExit:
		return fmt.Sprintf("%s: %s", s.Name, r.Message)
	case !strings.HasPrefix(last, s.Name+": "):
		return fmt.Sprintf("%s: the run ended with status %d: %s", s.Name, r.ExitCode, last)
	}
	return last
}
