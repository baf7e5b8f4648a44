package arch

// StopReason is the reason why a run ended.
type StopReason uint8

// Reasons for a run to end; see Stop.
const (
	StopBudget StopReason = iota + 1
	StopSyscall
	StopFault
	StopNoMemory
	StopException
	StopInterrupt
	StopBreakpoint
	StopPause
	StopSync
	StopEngine
	StopLog
)

// Stop is the end of a run.
type Stop struct {
	Reason StopReason
	// Vector is the exception or interrupt number, for StopException (PC at the instruction) and
	// StopInterrupt (PC after it).
	Vector uint8
	// Access and Kind describe a StopFault or StopNoMemory; Page is the start of the accessed page.
	// FaultAddr of the engine returns the exact address.
	Access Access
	Kind   FaultKind
	Page   Addr
	// Ahead reports whether a StopFault is of code that follows the PC in another page and that the
	// thread has not reached: see StepAhead of the engine.
	Ahead bool
	// Instructions and Cycles count the instructions that the run retired, and their cost.
	Instructions uint64
	Cycles       Cycles
	// Inside is the number of accesses done of the instruction that a StopBudget interrupts; 0: it
	// interrupts none. See Interrupted.
	Inside uint8
	// Repeated is the number of those instructions that were iterations of repeated string
	// instructions, without the last of each; it is known only if branches are logged.
	Repeated uint64
	// Err is the failure of the engine, for StopEngine.
	Err error
}
