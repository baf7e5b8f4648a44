// Package bpf is the classic BPF machine as far as seccomp(2) uses it: programs that
// look at one fixed block of data, a system call, and return a number. It checks
// programs as Linux does (net/core/filter.c, kernel/seccomp.c) and runs them. It knows
// nothing of system calls.
//
// Invariants:
//
//  1. A Program has passed New: each jump goes forwards and stays inside, each load is
//     inside the data, each word of scratch memory is stored before it is loaded, and
//     the last instruction returns. So Run ends after at most as many steps as the
//     program has instructions, and cannot fail.
//  2. A Program never changes.
package bpf

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Instruction is a struct sock_filter.
type Instruction struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// InstructionSize is the size of a struct sock_filter.
const InstructionSize = 8

// MaxInstructions is the number of instructions that a program may have
// (BPF_MAXINSNS).
const MaxInstructions = 4096

const (
	scratchWords = 16 // BPF_MEMWORDS
	wordBits     = 32
)

// Decode reads instructions as they lie in memory.
func Decode(b []byte) []Instruction {
	list := make([]Instruction, len(b)/InstructionSize)
	for i := range list {
		at := b[i*InstructionSize:]
		list[i] = Instruction{
			Code: binary.LittleEndian.Uint16(at), JT: at[2], JF: at[3], K: binary.LittleEndian.Uint32(at[4:]),
		}
	}
	return list
}

// Encode is the reverse of Decode.
func Encode(list []Instruction) []byte {
	var b []byte
	for _, i := range list {
		b = binary.LittleEndian.AppendUint16(b, i.Code)
		b = append(b, i.JT, i.JF)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	return b
}

// Program is a checked program.
type Program struct {
	list []Instruction
	size uint32 // of the data
}

// SharedInSnapshot marks that programs never change.
func (*Program) SharedInSnapshot() {}

// New checks a program for data of a size, a multiple of 4, as Linux checks seccomp
// filters. EINVAL: it is not valid.
func New(list []Instruction, size uint32) (*Program, unix.Errno) {
	if len(list) == 0 || len(list) > MaxInstructions {
		return nil, unix.EINVAL
	}
	for at, i := range list {
		if !isAllowed(i.Code) || !hasValidOperand(i, uint32(len(list)-at-1), size) {
			return nil, unix.EINVAL
		}
	}
	last := list[len(list)-1].Code
	if last != unix.BPF_RET|unix.BPF_K && last != unix.BPF_RET|unix.BPF_A || !loadsWhatIsStored(list) {
		return nil, unix.EINVAL
	}
	return &Program{append([]Instruction(nil), list...), size}, 0
}

// Instructions is the program as it was given to New.
func (p *Program) Instructions() []Instruction { return p.list }

// isAllowed reports whether seccomp has an instruction.
func isAllowed(code uint16) bool {
	switch code {
	case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_LD | unix.BPF_W | unix.BPF_LEN,
		unix.BPF_LDX | unix.BPF_W | unix.BPF_LEN, unix.BPF_LD | unix.BPF_IMM, unix.BPF_LDX | unix.BPF_IMM,
		unix.BPF_LD | unix.BPF_MEM, unix.BPF_LDX | unix.BPF_MEM, unix.BPF_ST, unix.BPF_STX,
		unix.BPF_RET | unix.BPF_K, unix.BPF_RET | unix.BPF_A,
		unix.BPF_MISC | unix.BPF_TAX, unix.BPF_MISC | unix.BPF_TXA,
		unix.BPF_ALU | unix.BPF_NEG, unix.BPF_JMP | unix.BPF_JA:
		return true
	}
	switch code &^ unix.BPF_X {
	case unix.BPF_ALU | unix.BPF_ADD, unix.BPF_ALU | unix.BPF_SUB, unix.BPF_ALU | unix.BPF_MUL,
		unix.BPF_ALU | unix.BPF_DIV, unix.BPF_ALU | unix.BPF_OR, unix.BPF_ALU | unix.BPF_AND,
		unix.BPF_ALU | unix.BPF_XOR, unix.BPF_ALU | unix.BPF_LSH, unix.BPF_ALU | unix.BPF_RSH,
		unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_JMP | unix.BPF_JGT, unix.BPF_JMP | unix.BPF_JGE, unix.BPF_JMP | unix.BPF_JSET:
		return true
	}
	return false
}

// hasValidOperand checks an instruction's numbers; rest is how many instructions
// follow it.
func hasValidOperand(i Instruction, rest, size uint32) bool {
	switch i.Code {
	case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
		return i.K < size && i.K%4 == 0
	case unix.BPF_ALU | unix.BPF_DIV | unix.BPF_K:
		return i.K != 0
	case unix.BPF_ALU | unix.BPF_LSH | unix.BPF_K, unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K:
		return i.K < wordBits
	case unix.BPF_LD | unix.BPF_MEM, unix.BPF_LDX | unix.BPF_MEM, unix.BPF_ST, unix.BPF_STX:
		return i.K < scratchWords
	case unix.BPF_JMP | unix.BPF_JA:
		return i.K < rest
	}
	if i.Code&0x07 == unix.BPF_JMP {
		return uint32(i.JT) < rest && uint32(i.JF) < rest
	}
	return true
}

// loadsWhatIsStored checks that on each way through the program words of scratch
// memory are stored before they are loaded.
func loadsWhatIsStored(list []Instruction) bool {
	stored := make([]uint16, len(list)) // on all ways to an instruction, as a set of words
	for i := range stored {
		stored[i] = ^uint16(0)
	}
	now := uint16(0)
	for at, i := range list {
		now &= stored[at]
		switch i.Code {
		case unix.BPF_ST, unix.BPF_STX:
			now |= 1 << i.K
		case unix.BPF_LD | unix.BPF_MEM, unix.BPF_LDX | unix.BPF_MEM:
			if now&(1<<i.K) == 0 {
				return false
			}
		case unix.BPF_JMP | unix.BPF_JA:
			stored[at+1+int(i.K)] &= now
			now = ^uint16(0)
		default:
			if i.Code&0x07 == unix.BPF_JMP {
				stored[at+1+int(i.JT)] &= now
				stored[at+1+int(i.JF)] &= now
				now = ^uint16(0)
			}
		}
	}
	return true
}

// Run runs the program on data, whose size was given to New, and returns its
// result and how many instructions it took. Words of data are in the order of the
// processor.
func (p *Program) Run(data []byte) (result uint32, steps int) {
	var a, x uint32
	var scratch [scratchWords]uint32
	for at := 0; ; at++ {
		i := &p.list[at]
		steps++
		k := i.K
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[k:])
		case unix.BPF_LD | unix.BPF_W | unix.BPF_LEN:
			a = p.size
		case unix.BPF_LDX | unix.BPF_W | unix.BPF_LEN:
			x = p.size
		case unix.BPF_LD | unix.BPF_IMM:
			a = k
		case unix.BPF_LDX | unix.BPF_IMM:
			x = k
		case unix.BPF_LD | unix.BPF_MEM:
			a = scratch[k]
		case unix.BPF_LDX | unix.BPF_MEM:
			x = scratch[k]
		case unix.BPF_ST:
			scratch[k] = a
		case unix.BPF_STX:
			scratch[k] = x
		case unix.BPF_MISC | unix.BPF_TAX:
			x = a
		case unix.BPF_MISC | unix.BPF_TXA:
			a = x
		case unix.BPF_RET | unix.BPF_K:
			return k, steps
		case unix.BPF_RET | unix.BPF_A:
			return a, steps
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(k)
		default:
			operand := k
			if i.Code&unix.BPF_X != 0 {
				operand = x
			}
			if i.Code&0x07 == unix.BPF_JMP {
				at += int(i.JF)
				if compares(i.Code, a, operand) {
					at += int(i.JT) - int(i.JF)
				}
				continue
			}
			var ok bool
			if a, ok = calculate(i.Code, a, operand); !ok {
				return 0, steps
			}
		}
	}
}

// compares reports whether a conditional jump is taken.
func compares(code uint16, a, operand uint32) bool {
	switch code &^ unix.BPF_X {
	case unix.BPF_JMP | unix.BPF_JEQ:
		return a == operand
	case unix.BPF_JMP | unix.BPF_JGT:
		return a > operand
	case unix.BPF_JMP | unix.BPF_JGE:
		return a >= operand
	default:
		return a&operand != 0
	}
}

// calculate carries out an arithmetic instruction; false: it divides by zero, which
// ends a program with the result 0.
func calculate(code uint16, a, operand uint32) (uint32, bool) {
	switch code &^ unix.BPF_X {
	case unix.BPF_ALU | unix.BPF_ADD:
		return a + operand, true
	case unix.BPF_ALU | unix.BPF_SUB:
		return a - operand, true
	case unix.BPF_ALU | unix.BPF_MUL:
		return a * operand, true
	case unix.BPF_ALU | unix.BPF_DIV:
		if operand == 0 {
			return 0, false
		}
		return a / operand, true
	case unix.BPF_ALU | unix.BPF_OR:
		return a | operand, true
	case unix.BPF_ALU | unix.BPF_AND:
		return a & operand, true
	case unix.BPF_ALU | unix.BPF_XOR:
		return a ^ operand, true
	case unix.BPF_ALU | unix.BPF_LSH:
		return a << (operand % wordBits), true // as the processor's shifts
	case unix.BPF_ALU | unix.BPF_RSH:
		return a >> (operand % wordBits), true
	default: // unix.BPF_NEG
		return -a, true
	}
}
