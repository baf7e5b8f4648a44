package machine

import (
	"encoding/json"
	"io"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// Config is everything that a run depends on besides the bytes of the program
// and of the files it reads. Two runs with equal configurations on equal files
// are equal, bit for bit.
type Config struct {
	// Args is the program and its arguments; Args[0] is looked up in the
	// guest's PATH when it has no slash.
	Args []string
	// Env is the guest's environment as K=V. DefaultEnv gives the usual one.
	Env []string
	// Dir is the guest's working directory, an absolute guest path.
	Dir string
	// UID and GID are the guest's user and group.
	UID, GID uint32

	// Cores is the number of emulated cores, 1 to 64.
	Cores int
	// Seed chooses the run among all possible ones.
	Seed uint64
	// Sched chooses and tunes the scheduling policy.
	Sched sched.Options
	// Control chooses who decides when threads perform synchronization
	// operations; CustomSync are operations besides the known ones and those of
	// Record.Sync.Custom.
	Control    dmt.Control
	CustomSync []syncops.Custom
	// Enforce, when set, is the schedule that the run follows, instead of Control.
	Enforce *Enforce
	// Memory chooses the memory model, and when stores become visible.
	Memory storebuffer.Options
	// Engine executes instructions: engines.Auto, Direct or Unicorn; empty means Auto. Equal
	// configurations have equal results on each.
	Engine string
	// CPU is the level of the emulated processor.
	CPU arch.Level
	// Costs is the timing model of the emulated machine.
	Costs arch.Costs
	// RandomizeLayout derives the addresses of stack, heap, libraries and
	// program from the seed; otherwise they are fixed.
	RandomizeLayout bool

	// RootFS is the host folder that is the guest's root; empty means the
	// host's own root, reduced to the paths of DefaultPaths.
	RootFS string
	// Named are paths of the host that the guest sees because of Args; nil: those of vfs.NamedPaths and vfs.InstalledPaths.
	Named []string
	// Mounts are further host folders, visible at guest paths.
	Mounts []Mount
	// Hidden are absolute paths of the host that the guest does not see, whether they
	// exist or not: files that a first run writes and a second one would find.
	Hidden []string
	// Outputs are hidden as well: the files that this run writes or replays. A trace
	// does not name them, so that its bytes do not depend on its own name.
	Outputs []string
	// HostTimes shows files with their host's modification times instead of
	// one fixed time.
	HostTimes bool
	// ExportDir, when set, receives the files that the guest left in the
	// overlay.
	ExportDir string

	// MaxMemory bounds the guest's memory in bytes, files in the overlay
	// included.
	MaxMemory uint64
	// MaxInstructions ends the run when all threads together have retired that
	// number of instructions; 0 means no bound.
	MaxInstructions uint64
	// UnknownENOSYS makes every system call that the machine lacks answer ENOSYS;
	// otherwise those without a known fallback in libc stop the run.
	UnknownENOSYS bool

	// Stdin, Stdout and Stderr are the guest's first three descriptors. A nil
	// Stdin is empty; nil writers discard. Standard input is an input of the
	// run: it is read in full before the guest can see that more is there. So is
	// a failure of any of them, which the guest sees as a failure of its own call
	// (Result.Faults); a stream that has failed once fails from there on.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Closed are the descriptors that the guest does not have at the start.
	Closed [3]bool
	// Faults are failures that the streams are to have, as an earlier run had them.
	Faults []StreamFault
	// Strace, when set, receives a line for each system call.
	Strace io.Writer
	// EventLog, when set, receives one line for each event that enters the
	// digest, so that two runs can be compared (verify mode).
	EventLog io.Writer

	// Publish are the guest's ports that clients on the host can connect to (WithClients). What
	// they do is an input of the run.
	Publish []publish.Port

	// Requests are TCP ports of the guest whose requests are observed (Result.Requests).
	Requests []uint16

	// Service describes, in a recording, the service that its run has (WithService).
	Service json.RawMessage

	// Record, when set, says which events are recorded, and where.
	Record *Record
	// Replay, when set, is the recorded run that is repeated: Replay.Config
	// makes the whole configuration.
	Replay *Replay
}

// Mount makes the host's folder or file Host visible at the guest's path
// Guest. Writes go to the host only when Writable is set; otherwise they stay
// in the overlay.
type Mount struct {
	Host, Guest string
	Writable    bool
}
