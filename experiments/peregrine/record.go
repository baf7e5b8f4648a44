package peregrine

import (
	"io"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// RecordConfig is the recording that a schedule needs.
func RecordConfig(to io.Writer) *machine.Record {
	return &machine.Record{To: to, Sync: &machine.SyncRecord{Heap: true}, Inputs: true, Memory: &recorder.MemoryConfig{}}
}

// ControlConfig is the control of a run that a schedule is made of: its operations, and other
// events that may have a position in a schedule, happen one at a time.
func ControlConfig() dmt.Control { return dmt.Control{Policy: dmt.FCFS, Schedules: true} }

// bindNow has the dynamic linker look all functions up at the start. Otherwise the
// first thread that calls one does, and so do others that come meanwhile: races of
// the linker in every program, which take constraints far from any operation.
const bindNow = "LD_BIND_NOW=1"

// BindNow sets a configuration up for a run that a schedule is made of, and for runs that follow
// it.
func BindNow(c *machine.Config) {
	name, _, _ := strings.Cut(bindNow, "=")
	if !slices.ContainsFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
		c.Env = append(slices.Clone(c.Env), bindNow)
	}
}
