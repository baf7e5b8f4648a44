package schedules

import (
	"io"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/sched"
)

// Recording is what a run has to be recorded with for a schedule.
func Recording(to io.Writer) *heddle.Record {
	return &heddle.Record{To: to, Sync: &heddle.SyncRecord{Heap: true}, Inputs: true, Memory: &recorder.MemoryConfig{}}
}

// Control is how a run has to be controlled that a schedule is made of: its operations,
// and what else may have a place in a schedule, come one at a time.
func Control() sched.Control { return sched.Control{Policy: sched.FCFS, Schedules: true} }

// bindNow has the dynamic linker look all functions up at the start. Otherwise the
// first thread that calls one does, and so do others that come meanwhile: races of
// the linker in every program, which take constraints far from any operation.
const bindNow = "LD_BIND_NOW=1"

// BindNow sets a configuration up for a run that a schedule is made of, and for those
// that follow it.
func BindNow(c *heddle.Config) {
	name, _, _ := strings.Cut(bindNow, "=")
	if !slices.ContainsFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
		c.Env = append(slices.Clone(c.Env), bindNow)
	}
}
