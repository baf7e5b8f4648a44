package loader

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// Keys of the auxiliary vector (getauxval(3); the kernel's auxvec.h).
const (
	atNull       = 0
	atPhdr       = 3
	atPhent      = 4
	atPhnum      = 5
	atPageSize   = 6
	atBase       = 7
	atFlags      = 8
	atEntry      = 9
	atUID        = 11
	atEUID       = 12
	atGID        = 13
	atEGID       = 14
	atPlatform   = 15
	atHWCap      = 16
	atClockTicks = 17
	atSecure     = 23
	atRandom     = 25
	atHWCap2     = 26
	atExecFile   = 31
	atMinSigSize = 51
)

// The machine's description in the auxiliary vector.
const (
	platform   = "x86_64"
	clockTicks = 100
)

// Limits of Linux on strings.
const (
	maxString  = 128 << 10 // MAX_ARG_STRLEN
	maxStrings = 6 << 20   // three quarters of the stack's default limit
	minStrings = 128 << 10 // ARG_MAX
	stackExtra = 128 << 10 // mapped below the strings at once
)

// initialStack is the initial stack as it is laid out, from the top down.
type initialStack struct {
	l          *loading
	sp         arch.Addr
	args, env  []arch.Addr // of the strings
	executable arch.Addr   // of the program's name
}

// newStack maps the stack and puts the strings on it: from the top down eight
// zero bytes, the program's name, environment, arguments.
func (l *loading) newStack(p *program, args, env []string) (*initialStack, error) {
	size, err := l.stringsSize(args, env)
	if err != nil {
		return nil, err
	}
	top := stackTop - l.randomOffset(stackRoom)
	low := (top - arch.Addr(size)) &^ (arch.PageSize - 1)
	length := min(uint64(top-low)+stackExtra, max(l.as.Limits.Stack&^(arch.PageSize-1), uint64(top-low)))
	if _, errno := l.as.Mmap(mm.MapRequest{
		Addr: top - arch.Addr(length), Length: length, Prot: unix.PROT_READ | unix.PROT_WRITE | p.stack,
		Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_GROWSDOWN,
	}); errno != 0 {
		return nil, noRoomError(l.path, errno)
	}
	s := &initialStack{l: l, sp: top - 8}
	layout := &l.as.Layout
	layout.ExecutableStackFlags = p.stack
	if err := s.pushString(&s.executable, l.path); err != nil {
		return nil, err
	}
	layout.EnvEnd = s.executable
	if s.env, err = s.pushStrings(env); err != nil {
		return nil, err
	}
	layout.EnvStart = s.sp
	layout.ArgEnd = s.sp
	if s.args, err = s.pushStrings(args); err != nil {
		return nil, err
	}
	layout.ArgStart = s.sp
	return s, nil
}

// stringsSize checks the strings against the limits of execve and returns their size on
// the stack.
func (l *loading) stringsSize(args, env []string) (uint64, error) {
	limit := max(min(maxStrings, l.as.Limits.Stack/4), minStrings)
	size := uint64(len(l.path)) + 1 + 8
	pointers := 8 * uint64(len(args)+len(env))
	for _, list := range [][]string{args, env} {
		for _, s := range list {
			if len(s) >= maxString {
				return 0, newError(unix.E2BIG, errArguments.New(l.path, fmt.Sprintf("one has %d bytes", len(s))))
			}
			size += uint64(len(s)) + 1
		}
	}
	if size+pointers > limit {
		return 0, newError(unix.E2BIG, errArguments.New(l.path, fmt.Sprintf("%d bytes of %d", size+pointers, limit)))
	}
	return size, nil
}

// pushBytes puts bytes on the stack.
func (s *initialStack) pushBytes(b []byte) error {
	s.sp -= arch.Addr(len(b))
	if errno := s.l.as.CopyOut(s.sp, b); errno != 0 {
		return noRoomError(s.l.path, unix.ENOMEM)
	}
	return nil
}

// pushString pushes one string with its final zero and stores its address.
func (s *initialStack) pushString(at *arch.Addr, text string) error {
	err := s.pushBytes(append([]byte(text), 0))
	*at = s.sp
	return err
}

// pushStrings pushes a list, the first string lowest.
func (s *initialStack) pushStrings(list []string) ([]arch.Addr, error) {
	at := make([]arch.Addr, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		if err := s.pushString(&at[i], list[i]); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// finish stores the auxiliary vector, the pointers to the strings and argc on the
// stack, and returns the stack pointer.
func (s *initialStack) finish(p *program, image *Image, o Options) (arch.Addr, error) {
	if s.l.random != nil {
		s.sp -= arch.Addr(s.l.random.Uint64N(stackSlop))
	}
	s.sp &^= 15
	var platformAt arch.Addr
	if err := s.pushString(&platformAt, platform); err != nil {
		return 0, err
	}
	if err := s.pushBytes(o.Random[:]); err != nil {
		return 0, err
	}
	randomAt := s.sp
	auxv := s.auxiliaryVector(p, image, o, platformAt, randomAt)

	words := []uint64{uint64(len(s.args))}
	for _, list := range [][]arch.Addr{s.args, s.env} {
		for _, at := range list {
			words = append(words, uint64(at))
		}
		words = append(words, 0)
	}
	words = append(words, auxv...)
	b := make([]byte, 0, 8*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	s.l.as.Layout.Auxv = b[len(b)-8*len(auxv):]
	// Rounding leaves the gap above, where the vector ends.
	s.sp = (s.sp-arch.Addr(len(b)))&^15 + arch.Addr(len(b))
	if err := s.pushBytes(b); err != nil {
		return 0, err
	}
	s.l.as.Layout.StartStack = s.sp
	return s.sp, nil
}

// auxiliaryVector is the auxiliary vector, in the order of Linux.
func (s *initialStack) auxiliaryVector(p *program, image *Image, o Options, platformAt, randomAt arch.Addr) []uint64 {
	var id Identity
	if o.Identify != nil {
		id = o.Identify(p.file)
	}
	secure := uint64(0)
	if id.Secure {
		secure = 1
	}
	bias := uint64(image.Program.Bias)
	return []uint64{
		atMinSigSize, o.MinSignalStack,
		atHWCap, uint64(o.HWCap),
		atPageSize, arch.PageSize,
		atClockTicks, clockTicks,
		atPhdr, p.tableAddr() + bias,
		atPhent, programSize,
		atPhnum, uint64(len(p.programs)),
		atBase, uint64(image.Linker.Bias),
		atFlags, 0,
		atEntry, p.entry + bias,
		atUID, uint64(id.UID),
		atEUID, uint64(id.EUID),
		atGID, uint64(id.GID),
		atEGID, uint64(id.EGID),
		atSecure, secure,
		atRandom, uint64(randomAt),
		atHWCap2, 0,
		atExecFile, uint64(s.executable),
		atPlatform, uint64(platformAt),
		atNull, 0,
	}
}
