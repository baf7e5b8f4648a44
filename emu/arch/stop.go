package arch

// StopReason says why a run ended.
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
	// Vector is the exception or interrupt number, for StopException (PC at
	// the instruction) and StopInterrupt (PC behind it).
	Vector uint8
	// Access and Kind tell of a StopFault or StopNoMemory; Page is the start of
	// the page that was accessed. FaultAddr gives the exact address.
	Access Access
	Kind   FaultKind
	Page   Addr
	// Ahead reports whether a StopFault is of code that follows the PC in another page
	// and that the thread has not reached: see StepAhead.
	Ahead bool
	// Instructions and Cycles count what the run retired.
	Instructions uint64
	Cycles       Cycles
	// Inside is how many accesses of the instruction at its end are done, of a StopBudget
	// inside an instruction; 0: it is inside none. See Interrupted.
	Inside uint8
	// Repeated is how many of the instructions were iterations of a repeated
	// string instruction that went on after them; known if branches are logged.
	Repeated uint64
	// Err is the engine's own failure, for StopEngine.
	Err error
}
