package arch

// Addr is a guest virtual address.
type Addr uint64

// ThreadID is a guest thread's id as the guest sees it (gettid(2)). Ids are positive and are never
// reused within a run.
type ThreadID int32

// CoreID numbers the cores of the machine from 0.
type CoreID int32

// NoCore stands for a thread that is on no core.
const NoCore CoreID = -1

// NoThread stands for a core that has no thread.
const NoThread ThreadID = -1

// Cycles is virtual time: cycles of one core's clock since the start of the run, by the model in
// Costs. It is repeatable to the cycle, and independent of host time.
type Cycles uint64

// LineSize is the size of a cache line in bytes. An access that lies in two lines is two accesses,
// between which other cores may run (Intel SDM volume 3, section 9.1.1).
const LineSize = 64
