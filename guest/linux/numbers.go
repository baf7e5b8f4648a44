package linux

// Numbers of the system calls to which packages give a meaning that the table does not have.
const (
	Fstat       = 5
	RtSigreturn = 15
	Pread64     = 17
	SchedYield  = 24
	Times       = 100
	Futex       = 202
	ExitGroup   = 231
	Preadv      = 295
)

// Signals of the processor and of abort, signal(7).
const (
	SIGILL  = 4
	SIGTRAP = 5
	SIGABRT = 6
	SIGBUS  = 7
	SIGFPE  = 8
	SIGSEGV = 11
	SIGSYS  = 31
)
