package machine

import (
	"net/netip"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/replay"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Option gives a machine a collaborator: something that watches a run or takes decisions in
// place of the machine's own parts. A Config is data alone.
type Option func(*collaborators)

// collaborators are the settings of a machine's options.
type collaborators struct {
	hooks       []Hook
	watching    []recorder.Recording
	policy      sched.Policy
	plan        func() (*enforce.Plan, error)
	start       *recordedStart
	keepStore   func(arch.ThreadID, arch.Addr) int
	firstStores func() []storebuffer.Waiting
	memory      *mem.RAM
	atomics     bool
	second      bool
	isolated    bool
	oneCore     bool
	unhashed    bool
	bound       func(publish.Port, []netip.AddrPort)
	driven      bool
	service     *Service
}

// Service has the processes of some programs be the kernel's service (kernel.Service), whose threads
// a controller orders.
type Service struct {
	Programs   []string
	Controller sched.Controller
	// Seed and Cores are those that the guest sees.
	Seed  uint64
	Cores int
	// Acts counts what the driver of the service has done before decisions, and Next is the virtual time at which it will act if
	// nothing happens before.
	Acts uint64
	seen uint64
	Next func() (at arch.Cycles, found bool)
}

// WithService has the machine run a service. The guest sees every thread on core 0, and by RDTSC the
// instructions of the thread itself.
func WithService(s *Service) Option { return func(o *collaborators) { o.service, o.oneCore = s, true } }

// recordedStart is how a run begins that begins as a recorded one.
type recordedStart struct {
	decisions *replay.Log
	count     uint64
}

// WithoutHashes leaves the hashes of files out of Result.Inputs, for a caller that does not store the
// result: that of the C library takes milliseconds.
func WithoutHashes() Option { return func(o *collaborators) { o.unhashed = true } }

// WithHook has a Hook watch the run.
func WithHook(h Hook) Option { return func(o *collaborators) { o.hooks = append(o.hooks, h) } }

// WithPolicy replaces the scheduling policy of Config.Sched.
func WithPolicy(p sched.Policy) Option { return func(o *collaborators) { o.policy = p } }

// WithRecordings has recordings follow a run that is recorded, after the writers of its trace.
// A recording that logs memory needs a Config.Record without Memory.
func WithRecordings(list ...recorder.Recording) Option {
	return func(o *collaborators) { o.watching = append(o.watching, list...) }
}

// WithPlan has the machine call a function, while it is built, for the plan of the schedule
// that the run follows (Config.Enforce), as its Options.SyncOnly says, or for the reason why
// the run may not begin. The function may be called again for another machine, by several
// goroutines.
func WithPlan(plan func() (*enforce.Plan, error)) Option {
	return func(o *collaborators) { o.plan = plan }
}

// WithRecordedStart has the run begin with the first decisions of a recorded one, which
// must be open; after them the policy of WithPolicy decides. If count is 0 nothing of the
// recording is carried out.
func WithRecordedStart(r *Replay, count uint64) Option {
	return func(o *collaborators) {
		if count > 0 {
			o.start = &recordedStart{r.log, count}
		}
	}
}

// WithStoresKept has stores leave the store buffers before each quantum as soon as the
// memory model allows it. Keep returns how many of a thread's stores to an address stay, the
// newest ones; first, unless nil, has others leave before them. It replaces Options.Commit of the memory
// model, and needs store buffers that are kept store by store (storebuffer.ByStore.KeepStores).
func WithStoresKept(keep func(t arch.ThreadID, at arch.Addr) int, first func() []storebuffer.Waiting) Option {
	return func(o *collaborators) { o.keepStore, o.firstStores = keep, first }
}

// WithMemory has the machine use a guest memory, which it closes.
func WithMemory(ram *mem.RAM) Option { return func(o *collaborators) { o.memory = ram } }

// WithAtomics has the machine ask the controllers of the run before each atomic instruction
// outside of synchronization operations (sched.AtAtomic).
func WithAtomics() Option { return func(o *collaborators) { o.atomics = true } }

// WithOperationsOfThreads leaves out the operations that syncops.Config.SecondThread does.
func WithOperationsOfThreads() Option { return func(o *collaborators) { o.second = true } }

// WithOneVisibleCore shows the guest every thread on core 0, and by RDTSC the instructions of the
// thread itself.
func WithOneVisibleCore() Option { return func(o *collaborators) { o.oneCore = true } }

// WithClients lets programs on the host connect to the ports of Config.Publish. Bound is called
// for each, while the machine is built, with the addresses of the host that it has.
func WithClients(bound func(publish.Port, []netip.AddrPort)) Option {
	return func(o *collaborators) { o.bound = bound }
}

// WithDrivenClients leaves the clients of Config.Publish to the caller, who gives the machine their
// operations by CarryOut.
func WithDrivenClients() Option { return func(o *collaborators) { o.driven = true } }

// Isolated keeps the run from the host: the standard streams fail as Config.Faults says and
// never otherwise, and files that the guest changes are not written to the host.
func Isolated() Option { return func(o *collaborators) { o.isolated = true } }
