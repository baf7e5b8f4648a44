package linux

import "golang.org/x/sys/unix"

// Numbers of system calls that packages without golang.org/x/sys/unix name.
const (
	SchedYield  = unix.SYS_SCHED_YIELD
	RtSigreturn = unix.SYS_RT_SIGRETURN
	Times       = unix.SYS_TIMES
	Futex       = unix.SYS_FUTEX
	ExitGroup   = unix.SYS_EXIT_GROUP
)
