package linux

import "fmt"

// MaxErrno is the largest errno that a result can have (MAX_ERRNO of include/linux/err.h).
const MaxErrno = 4095

// Failed reports whether the raw result of a system call is an errno.
func Failed(result uint64) bool { return result > ^uint64(MaxErrno) }

// ResultText is the raw result of a system call as strace(1) shows it.
func ResultText(result uint64) string {
	if errno := Errno(result); errno != 0 {
		return "-1 " + ErrnoName(errno)
	}
	if result < 1<<16 {
		return fmt.Sprint(result)
	}
	return fmt.Sprintf("%#x", result)
}

// Sizes of structs, in bytes, and offsets in them.
const (
	SizeofTimespec = 16
	SizeofStat     = 144
	StatSize       = 48 // st_size of struct stat, stat(2)
	StatMode       = 24 // st_mode of struct stat
	StatxMode      = 28 // stx_mode of struct statx
	StatxSize      = 40 // stx_size of struct statx, statx(2)
	SizeofIovec    = 16 // a base and a length, 8 bytes each
	SizeofMsghdr   = 56
	SizeofMmsghdr  = 64 // a struct msghdr, and in 4 bytes how much it got
	MsghdrVector   = 16 // msg_iov of struct msghdr, recvmsg(2)
	MsghdrPieces   = 24 // msg_iovlen
	SizeofSiginfo  = 128
)

// MaxVector is how many pieces a vector can have (IOV_MAX, readv(2)).
const MaxVector = 1024

// MaxArgumentBytes is how long a string of the arguments or the environment can be (MAX_ARG_STRLEN, execve(2)).
const MaxArgumentBytes = 128 << 10

// Offsets in struct clone_args, clone(2). Each field has 8 bytes.
const (
	CloneArgsFlags     = 0
	CloneArgsChildTID  = 16
	CloneArgsStack     = 40
	CloneArgsStackSize = 48
	CloneArgsTLS       = 56
)

// Codes of arch_prctl(2).
const (
	ArchSetGS = 0x1001
	ArchSetFS = 0x1002
	ArchGetFS = 0x1003
	ArchGetGS = 0x1004
)

// Keys of the auxiliary vector, getauxval(3).
const (
	AuxNull   = 0
	AuxRandom = 25 // the address of RandomBytes random bytes
)

// RandomBytes is how many bytes AuxRandom points to.
const RandomBytes = 16
