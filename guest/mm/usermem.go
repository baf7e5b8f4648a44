package mm

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The methods of this file are the kernel's access to user memory. They fault pages in
// and respect protections as the guest's own accesses do; inaccessible memory is
// EFAULT. Starved reports whether exhausted memory was the reason.

// Range is a piece of user memory.
type Range struct {
	Addr arch.Addr
	Len  uint64
}

// Limits of vectors of ranges: UIO_MAXIOV, and MAX_RW_COUNT for the bytes of
// one call.
const (
	MaxRanges   = 1024
	MaxTransfer = 1<<31 - arch.PageSize
)

// resolveKernelFault resolves the kernel's own fault at va, and reports whether it
// could.
func (as *AddressSpace) resolveKernelFault(va arch.Addr, access arch.Access) bool {
	r := as.Fault(va, access)
	as.starved = as.starved || r == OutOfMemory
	return r == Resolved
}

// CopyIn fills b with the bytes at va.
func (as *AddressSpace) CopyIn(va arch.Addr, b []byte) unix.Errno {
	_, errno := as.CopyInPart(va, b)
	return errno
}

// CopyInPart is CopyIn that also returns how many bytes were copied before an error.
func (as *AddressSpace) CopyInPart(va arch.Addr, b []byte) (int, unix.Errno) {
	done := 0
	for {
		n, why := as.space.ReadAt(b[done:], va+arch.Addr(done))
		if done += n; why == arch.NoFault {
			return done, 0
		}
		if !as.resolveKernelFault(va+arch.Addr(done), arch.AccessRead) {
			return done, unix.EFAULT
		}
	}
}

// CopyOut copies b to va.
func (as *AddressSpace) CopyOut(va arch.Addr, b []byte) unix.Errno {
	_, errno := as.CopyOutPart(va, b)
	return errno
}

// CopyOutPart is CopyOut that also returns how many bytes were copied before an error.
func (as *AddressSpace) CopyOutPart(va arch.Addr, b []byte) (int, unix.Errno) {
	done := 0
	for {
		n, why := as.space.WriteAt(b[done:], va+arch.Addr(done))
		if done += n; why == arch.NoFault {
			return done, 0
		}
		if !as.resolveKernelFault(va+arch.Addr(done), arch.AccessWrite) {
			return done, unix.EFAULT
		}
	}
}

// Zero makes n bytes at va zero (clear_user).
func (as *AddressSpace) Zero(va arch.Addr, n uint64) unix.Errno {
	block := make([]byte, min(n, arch.PageSize))
	for n > 0 {
		part := block[:min(n, uint64(len(block)))]
		if errno := as.CopyOut(va, part); errno != 0 {
			return errno
		}
		va += arch.Addr(len(part))
		n -= uint64(len(part))
	}
	return 0
}

// ReadCString returns the string at va without its final zero. It fails with
// ENAMETOOLONG when there is no zero among the first max bytes.
func (as *AddressSpace) ReadCString(va arch.Addr, limit int) (string, unix.Errno) {
	var b []byte
	chunk := make([]byte, min(limit, 256))
	for len(b) < limit {
		part := chunk[:min(len(chunk), limit-len(b))]
		n, why := as.space.ReadString(part, va+arch.Addr(len(b)))
		b = append(b, part[:n]...)
		if n > 0 && b[len(b)-1] == 0 {
			return string(b[:len(b)-1]), 0
		}
		if why != arch.NoFault && !as.resolveKernelFault(va+arch.Addr(len(b)), arch.AccessRead) {
			return "", unix.EFAULT
		}
	}
	return "", unix.ENAMETOOLONG
}

// ReadU8 reads one byte.
func (as *AddressSpace) ReadU8(va arch.Addr) (uint8, unix.Errno) {
	var b [1]byte
	errno := as.CopyIn(va, b[:])
	return b[0], errno
}

// ReadU16 reads a little-endian number.
func (as *AddressSpace) ReadU16(va arch.Addr) (uint16, unix.Errno) {
	var b [2]byte
	errno := as.CopyIn(va, b[:])
	return binary.LittleEndian.Uint16(b[:]), errno
}

// ReadU32 reads a little-endian number.
func (as *AddressSpace) ReadU32(va arch.Addr) (uint32, unix.Errno) {
	var b [4]byte
	errno := as.CopyIn(va, b[:])
	return binary.LittleEndian.Uint32(b[:]), errno
}

// ReadU64 reads a little-endian number.
func (as *AddressSpace) ReadU64(va arch.Addr) (uint64, unix.Errno) {
	var b [8]byte
	errno := as.CopyIn(va, b[:])
	return binary.LittleEndian.Uint64(b[:]), errno
}

// WriteU8 writes one byte.
func (as *AddressSpace) WriteU8(va arch.Addr, x uint8) unix.Errno {
	return as.CopyOut(va, []byte{x})
}

// WriteU16 writes a little-endian number.
func (as *AddressSpace) WriteU16(va arch.Addr, x uint16) unix.Errno {
	return as.CopyOut(va, binary.LittleEndian.AppendUint16(nil, x))
}

// WriteU32 writes a little-endian number.
func (as *AddressSpace) WriteU32(va arch.Addr, x uint32) unix.Errno {
	return as.CopyOut(va, binary.LittleEndian.AppendUint32(nil, x))
}

// WriteU64 writes a little-endian number.
func (as *AddressSpace) WriteU64(va arch.Addr, x uint64) unix.Errno {
	return as.CopyOut(va, binary.LittleEndian.AppendUint64(nil, x))
}

// CompareAndSwapU32 replaces old by x at va, and returns the value before. The word
// must be writable even if it is not replaced, as for the processor's own instruction.
func (as *AddressSpace) CompareAndSwapU32(va arch.Addr, old, x uint32) (uint32, unix.Errno) {
	have, errno := as.ReadU32(va)
	if errno != 0 {
		return 0, errno
	}
	store := have
	if have == old {
		store = x
	}
	return have, as.WriteU32(va, store)
}

// ReadRanges reads a vector of count struct iovec. EINVAL: too many, or a length that
// is negative as a ssize_t. Lengths beyond MaxTransfer in total are cut.
func (as *AddressSpace) ReadRanges(va arch.Addr, count uint64) ([]Range, unix.Errno) {
	if count > MaxRanges {
		return nil, unix.EINVAL
	}
	b := make([]byte, 16*count)
	if errno := as.CopyIn(va, b); errno != 0 {
		return nil, errno
	}
	ranges := make([]Range, count)
	room := uint64(MaxTransfer)
	for i := range ranges {
		r := Range{arch.Addr(binary.LittleEndian.Uint64(b[16*i:])), binary.LittleEndian.Uint64(b[16*i+8:])}
		if int64(r.Len) < 0 {
			return nil, unix.EINVAL
		}
		if r.Len > uint64(TaskSize) || r.Addr > TaskSize-arch.Addr(r.Len) {
			return nil, unix.EFAULT
		}
		r.Len = min(r.Len, room)
		room -= r.Len
		ranges[i] = r
	}
	return ranges, 0
}

// TotalLen is the number of bytes in ranges.
func TotalLen(ranges []Range) uint64 {
	var n uint64
	for _, r := range ranges {
		n += r.Len
	}
	return n
}

// CopyInRanges fills b from ranges, and returns how many bytes there were
// before b was full, the ranges ended, or an error.
func (as *AddressSpace) CopyInRanges(ranges []Range, b []byte) (int, unix.Errno) {
	return forEachRange(ranges, b, as.CopyInPart)
}

// CopyOutRanges copies b to ranges, and returns how many bytes were copied
// before b was used up, the ranges were full, or an error.
func (as *AddressSpace) CopyOutRanges(ranges []Range, b []byte) (int, unix.Errno) {
	return forEachRange(ranges, b, as.CopyOutPart)
}

func forEachRange(ranges []Range, b []byte, move func(arch.Addr, []byte) (int, unix.Errno)) (int, unix.Errno) {
	done := 0
	for _, r := range ranges {
		part := b[done : done+int(min(r.Len, uint64(len(b)-done)))]
		n, errno := move(r.Addr, part)
		if done += n; errno != 0 {
			return done, errno
		}
	}
	return done, 0
}

// SkipRanges returns ranges without their first n bytes.
func SkipRanges(ranges []Range, n uint64) []Range {
	for len(ranges) > 0 && n >= ranges[0].Len {
		n -= ranges[0].Len
		ranges = ranges[1:]
	}
	if n == 0 || len(ranges) == 0 {
		return ranges
	}
	rest := append([]Range(nil), ranges...)
	rest[0].Addr += arch.Addr(n)
	rest[0].Len -= n
	return rest
}
