package find

import (
	"crypto/sha256"
	"fmt"
	"strconv"
)

// Output is a standard output with which schedules ended.
type Output struct {
	// Text is its beginning, Bytes its length.
	Text  string
	Bytes int
	// First is the number of the first schedule with it, from 1 on, Kind that schedule's kind, and Schedules the number
	// of all that ended with it.
	First     int
	Kind      Kind
	Schedules int
}

const (
	// outputText is the number of bytes of an output that are kept.
	outputText = 60
	// outputsKept is the number of different outputs that are told apart.
	outputsKept = 8
)

// printed is the standard output of a run: its hash and its beginning.
type printed struct {
	sum   [sha256.Size]byte
	text  string
	bytes int
}

func newPrinted(stdout []byte) printed {
	return printed{sha256.Sum256(stdout), string(stdout[:min(len(stdout), outputText)]), len(stdout)}
}

// noteOutput counts the output of the schedule with a number. Schedules are noted in order.
func (s *search) noteOutput(n int, p printed) {
	at, known := s.outputs[p.sum]
	switch {
	case known:
		s.report.Outputs[at].Schedules++
	case len(s.report.Outputs) == outputsKept:
		s.report.OtherOutputs++
	default:
		if s.outputs == nil {
			s.outputs = map[[sha256.Size]byte]int{}
		}
		s.outputs[p.sum] = len(s.report.Outputs)
		s.report.Outputs = append(s.report.Outputs, Output{Text: p.text, Bytes: p.bytes, First: n + 1, Kind: s.kindOf(n), Schedules: 1})
	}
}

// outputLines describes the outputs, if they differ: which of them are right is not known without the expected one.
func (r *Report) outputLines() (lines []string) {
	if len(r.Outputs) < 2 {
		return nil
	}
	lines = append(lines, "outputs differ; with --expect FILE a run whose output is not FILE's is a failure:")
	for _, o := range r.Outputs {
		text := strconv.Quote(o.Text)
		if o.Bytes > len(o.Text) {
			text += fmt.Sprintf("... (%d bytes)", o.Bytes)
		}
		lines = append(lines, fmt.Sprintf("  %s: %d schedules, the first %d (%v)", text, o.Schedules, o.First, o.Kind))
	}
	if r.OtherOutputs > 0 {
		lines = append(lines, fmt.Sprintf("  others: %d schedules", r.OtherOutputs))
	}
	return lines
}
