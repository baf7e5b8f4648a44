package arch

// Addr is a guest virtual address.
type Addr uint64

// ThreadID is a guest thread's id as the guest sees it (gettid). Ids are positive
// and are never reused within a run.
type ThreadID int32

// CoreID numbers the cores of the machine from 0.
type CoreID int32

// NoCore stands for a thread that is on no core.
const NoCore CoreID = -1

// NoThread stands for a core that has no thread.
const NoThread ThreadID = -1

// Cycles is virtual time: cycles of one core's clock since the start of the
// run. It is a model (arch.Costs), repeatable to the cycle, and says nothing
// about host time.
type Cycles uint64

// LineSize is the number of bytes of a cache line. An access that lies in two lines is two
// accesses, between which other cores may act (Intel SDM vol. 3, section 9.1.1).
const LineSize = 64
