package procfs

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/ipc/msg"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Kernel is the source of the two file systems' content. The guest's kernel implements
// it.
type Kernel interface {
	// Machine returns the current state of the machine.
	Machine() Machine
	// CPUID is the processor's identification: eax, ebx, ecx, edx.
	CPUID(leaf, subleaf uint32) [4]uint32
	// Processes lists the ids of all processes, zombies included, ascending.
	Processes() []int32
	// Process finds the process that has a thread of the given id; nil if there
	// is absent.
	Process(id int32) Process
	// PtraceScope and SetPtraceScope are about a number from 0 to 3 that restricts
	// tracing.
	PtraceScope() int
	SetPtraceScope(scope int)
	// SystemV returns the System V objects of each kind.
	SystemV() (*shm.System, *sem.System, *msg.System)
	// Sockets lists the sockets of a family and type, by port: AF_INET and AF_INET6 those that have a port and are not only
	// bound (SOCK_STREAM), or that have a port (SOCK_DGRAM); AF_UNIX those of all types that have descriptors, by inode.
	Sockets(family, kind int) []Socket
}

// Process is a thread group.
type Process interface {
	// ID is the process's id.
	ID() int32
	// Threads lists the ids of the live threads, ascending; a zombie has one,
	// its own.
	Threads() []int32
	// Status is the state of a thread; with id 0 of the process: times, faults and
	// switches of all its threads, the rest of the main one.
	Status(thread int32) (Status, bool)
	// Space is the memory; nil for a zombie.
	Space() *mm.AddressSpace
	// Args are the program's arguments, for a process without memory.
	Args() []string
	// Exe, Cwd and Root are the program, the working directory and the root
	// folder; nil if it has none (any more).
	Exe() *vfs.Dentry
	Cwd() *vfs.Dentry
	Root() *vfs.Dentry
	// Files lists the open descriptors, ascending.
	Files() []int32
	// File is an open descriptor's description, and nil if it is not open;
	// cloexec is FD_CLOEXEC.
	File(fd int32) (f *vfs.File, cloexec bool)
	// Limit is a resource limit; resource is unix.RLIMIT_CPU and so on.
	Limit(resource int) unix.Rlimit
	// SetName changes a thread's name, which has at most 15 bytes.
	SetName(thread int32, name string)
	// MayExamine reports whether the caller may see data that is private to the
	// process.
	MayExamine(c *vfs.Ctx) bool
	// MayTrace reports whether the caller may trace the process.
	MayTrace(c *vfs.Ctx) bool
	// OOMScoreAdj and SetOOMScoreAdj keep a number from -1000 to 1000.
	OOMScoreAdj() int
	SetOOMScoreAdj(score int)
}

// Status is the state of a thread or a process in /proc.
type Status struct {
	Name                     string // comm
	State                    byte   // 'R', 'S', 'T', 'Z' and so on
	Parent, Group, Session   int32
	UID, GID                 [4]uint32 // real, effective, saved, file system
	Groups                   []uint32
	Inheritable, Permitted   uint64 // sets of capabilities
	Effective                uint64
	Bounding, Ambient        uint64
	Umask                    uint32
	Pending, SharedPending   uint64 // sets of signals; bit 0 is signal 1
	Blocked, Ignored, Caught uint64
	QueuedSignals            int
	NoNewPrivs, Dumpable     bool
	Affinity                 uint64 // set of cores
	Core                     int32  // that it ran on last
	Voluntary, Involuntary   uint64 // context switches
	UserNS, SystemNS         int64  // time spent
	ChildUserNS, ChildSysNS  int64  // of children that were waited for
	StartNS                  int64  // since the start of the machine
	MinorFaults, MajorFaults uint64
	ExitSignal, ExitStatus   int
	Terminal                 uint32 // device number of the one that controls the session, 0 without one
	Foreground               int32  // its process group, -1 without a terminal
	Waits                    string // kernel function it waits in, "" if none
	ReadBytes, WrittenBytes  uint64 // by read and write calls
	ReadCalls, WriteCalls    uint64
	DescriptorTable          int // size
	Nice, Policy             int
	Priority                 int // inside the kernel: 120 plus the nice value, lower for real-time classes
	RealtimePriority         int
	Personality              uint32
	Seccomp, SeccompFilters  int // mode, and how many filters there are
	Tracer                   int32
	Call                     int64 // the system call of a thread that does not run, or -1
	CallArgs                 [6]uint64
	SP, PC                   uint64 // of a thread that does not run
}

// CoreTimes is the time that a core spent, in nanoseconds.
type CoreTimes struct{ UserNS, SystemNS, IdleNS int64 }

// Machine is the state of the machine in /proc and /sys.
type Machine struct {
	Cores                              int
	KHz                                uint64 // of each core, in virtual time
	MemoryBytes, FreeBytes             uint64
	CacheBytes, SharedBytes, AnonBytes uint64 // parts of the used memory
	Hostname, Domainname               string
	Release, Version                   string // as in uname(2)
	BootNS                             int64  // real time at the start, since 1970
	UptimeNS                           int64
	Times                              []CoreTimes // by core
	Switches, Forks                    uint64      // since the start
	Running, Blocked, Threads          int         // now
	LastID                             int32       // given to a thread
	BootID                             [16]byte    // random
	MaxThreads                         int
}
