package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// argumentKinds says how the arguments of a system call are shown: f a
// descriptor, s a string, b bytes whose number is the next argument, d a
// number, o an octal mode, x a mask, p an address. Others are shown as
// addresses when they are large and as numbers otherwise.
var argumentKinds = map[string]string{
	"read": "fpd", "write": "fbd", "pread64": "fpdd", "pwrite64": "fbdd", "open": "sxo", "openat": "fsxo", "close": "f",
	"stat": "sp", "lstat": "sp", "fstat": "fp", "newfstatat": "fspx", "statx": "fsxxp", "access": "sd",
	"faccessat": "fsd", "faccessat2": "fsdx", "execve": "spp", "execveat": "fsppx", "readlink": "spd",
	"readlinkat": "fspd", "unlink": "s", "unlinkat": "fsx", "rename": "ss", "renameat": "fsfs", "renameat2": "fsfsx",
	"link": "ss", "linkat": "fsfsx", "symlink": "ss", "symlinkat": "sfs", "mkdir": "so", "mkdirat": "fso", "rmdir": "s",
	"chdir": "s", "fchdir": "f", "chmod": "so", "fchmod": "fo", "fchmodat": "fso", "chown": "sdd", "fchown": "fdd",
	"truncate": "sd", "ftruncate": "fd", "lseek": "fdd", "dup": "f", "dup2": "ff", "dup3": "ffx", "fcntl": "fdx",
	"ioctl": "fxp", "getdents64": "fpd", "mknod": "sox", "mknodat": "fsox", "utimensat": "fspx", "statfs": "sp",
	"fstatfs": "fp", "memfd_create": "sx", "mmap": "pdxxfx", "munmap": "pd", "mprotect": "pdx", "kill": "dd",
	"tgkill": "ddd", "tkill": "dd", "wait4": "dpxp", "exit": "d", "exit_group": "d", "sendto": "fbdxpd", "recvfrom": "fpdxpp",
	"socket": "ddd", "connect": "fpd", "bind": "fpd", "listen": "fd", "accept": "fpp", "accept4": "fppx",
	"futex": "pddppd", "clone": "xpppp", "chroot": "s", "sendfile": "ffpd", "splice": "fpfpdx", "poll": "pdd",
	"epoll_ctl": "fdfp", "epoll_wait": "fpdd", "getxattr": "sspd", "lgetxattr": "sspd",
	"shmget": "xdo", "shmat": "dpx", "shmdt": "p", "shmctl": "ddp", "semget": "xdo", "semop": "dpd", "semtimedop": "dpdp",
	"semctl": "dddp", "msgget": "xo", "msgsnd": "dpdx", "msgrcv": "dpddx", "msgctl": "ddp",
	"mq_open": "sxop", "mq_unlink": "s", "mq_timedsend": "fbddp", "mq_timedreceive": "fpdpp", "mq_notify": "fp",
	"mq_getsetattr": "fpp", "inotify_init1": "x", "inotify_add_watch": "fsx", "inotify_rm_watch": "fd",
}

// maxShown is how much of a string or buffer is shown.
const maxShown = 32

// Trace is a system call that the thread has just completed, with the result
// ret, as strace(1) would print it.
func (t *Task) Trace(number uint64, args [6]uint64, ret uint64) string {
	return t.showCall(number, args) + " = " + ResultText(ret)
}

// showCall is a system call without a result.
func (t *Task) showCall(number uint64, args [6]uint64) string {
	name := SyscallName(number)
	if name == "" {
		name = "syscall_" + strconv.FormatUint(number, 10)
	}
	kinds := argumentKinds[name]
	shown := make([]string, SyscallArgs(number))
	for i := range shown {
		kind := byte(0)
		if i < len(kinds) {
			kind = kinds[i]
		}
		next := uint64(0)
		if i+1 < len(args) {
			next = args[i+1]
		}
		shown[i] = t.showArgument(kind, args[i], next)
	}
	return name + "(" + strings.Join(shown, ", ") + ")"
}

func (t *Task) showArgument(kind byte, v, next uint64) string {
	switch kind {
	case 'f':
		if int32(v) == unix.AT_FDCWD {
			return "AT_FDCWD"
		}
		return strconv.Itoa(int(int32(v)))
	case 's':
		return t.showBytes(v, unix.PathMax, true)
	case 'b':
		return t.showBytes(v, next, false)
	case 'd':
		if v>>32 == 0 {
			return strconv.Itoa(int(int32(v))) // most are of type int
		}
		return strconv.FormatInt(int64(v), 10)
	case 'o':
		return fmt.Sprintf("%#o", v)
	case 'x':
		return fmt.Sprintf("%#x", v)
	}
	switch {
	case v == 0 && kind == 'p':
		return "NULL"
	case v < 1<<16 && kind != 'p':
		return strconv.FormatUint(v, 10)
	}
	return fmt.Sprintf("%#x", v)
}

// showBytes quotes what guest memory holds at an address: a string, or so many
// bytes of a buffer, of which only the first are shown.
func (t *Task) showBytes(addr, size uint64, text bool) string {
	if t.proc.space == nil {
		return fmt.Sprintf("%#x", addr)
	}
	// Only what is resident is read: a trace must not change the run.
	if text {
		b := make([]byte, size)
		n, _ := t.proc.space.Space().ReadString(b, event.Addr(addr))
		if n == 0 || b[n-1] != 0 {
			return fmt.Sprintf("%#x", addr)
		}
		return strconv.Quote(string(b[:n-1]))
	}
	b := make([]byte, min(size, maxShown))
	n, _ := t.proc.space.Space().ReadAt(b, event.Addr(addr))
	if n == 0 && size > 0 {
		return fmt.Sprintf("%#x", addr)
	}
	quoted := strconv.Quote(string(b[:n]))
	if uint64(n) < size {
		quoted += "..."
	}
	return quoted
}
