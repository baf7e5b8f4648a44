package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// Event is a step of an execution in words.
type Event struct {
	Thread int
	// Commit distinguishes a commit from an instruction.
	Commit bool
	// Text is the instruction, with the load if the step is one load of several and not
	// the last, or the store that was committed.
	Text string
}

// String is the event as a line: P0: movl $1,(x).
func (e Event) String() string {
	if e.Commit {
		return fmt.Sprintf("P%d: commit %s", e.Thread, e.Text)
	}
	return fmt.Sprintf("P%d: %s", e.Thread, e.Text)
}

// Witness is an execution that ends in the outcome; nil if none was found.
func (r *Result) Witness(s litmus.State) []Event {
	id, ok := r.final[s.Key()]
	if !ok {
		return nil
	}
	x := r.explorer
	var path []Event
	for ; x.parents[id] >= 0; id = x.parents[id] {
		path = append(path, x.describeStep(&x.states[x.parents[id]], x.by[id]))
	}
	slices.Reverse(path)
	return path
}

// describeStep puts a step into words.
func (s *system) describeStep(st *state, by step) Event {
	i := int(by.thread)
	if by.entry != instruction {
		return Event{i, true, s.describeStore(&s.buffers[st.buffer[i]][by.entry])}
	}
	n := &s.infos[st.thread[i]]
	text := s.test.Source(i, n.index)
	if !n.isLastStep() {
		l := n.nextLoads()[0]
		text += fmt.Sprintf(", load of %s (%d bytes)", s.describePlace(uint64(l.at)), l.size)
	}
	return Event{i, false, text}
}

// describeStore is a store as place=value.
func (s *system) describeStore(e *memmodel.Entry) string {
	var number uint64
	for k := range min(e.Size, 8) {
		number |= uint64(e.Data[k]) << (8 * k)
	}
	return fmt.Sprintf("%s=%d (%d bytes)", s.describePlace(e.Addr), number, e.Size)
}

// describePlace is an offset from litmus.DataBase as location+offset.
func (s *system) describePlace(at uint64) string {
	place := fmt.Sprintf("%#x", at)
	for _, v := range s.test.Vars {
		off := at + litmus.DataBase - v.Addr
		if off < uint64(v.Count*v.Type.Size) {
			place = strings.TrimSuffix(fmt.Sprintf("%s+%d", v.Name, off), "+0")
		}
	}
	return place
}
