package kernel

import (
	"golang.org/x/sys/unix"
)

// Calls whose objects are not connected yet; whoever writes one deletes its line.

func sysAccept(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysAccept4(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysBind(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysConnect(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysGetpeername(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysGetsockname(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysGetsockopt(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysListen(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysRecvfrom(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysRecvmmsg(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysRecvmsg(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysSendmmsg(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysSendmsg(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysSendto(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysSetsockopt(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysShutdown(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysSocket(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }

func sysSocketpair(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.ENOSYS }
