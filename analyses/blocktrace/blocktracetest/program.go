// Package blocktracetest makes block traces of small programs for tests: it interprets
// functions of an ELF file that call nothing outside of it.
package blocktracetest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// StackTop is the stack address at which a function finds its return address.
const StackTop = 0x7fff_0000

// returnAddress is where the functions return to, outside of the program.
const returnAddress = 0xdead_0000

// Program is an ELF file and a Log of the functions that Call has executed.
type Program struct {
	Image *cfg.Image
	Log   *blocktrace.Log

	test    testing.TB
	memory  map[uint64]byte // bytes that differ from the file's
	blocks  map[uint64]*vex.Block
	numbers map[uint64]int
	code    map[uint64][]byte
	pieces  uint64
}

// Compile compiles a C program that needs no library, and makes an empty log of it.
func Compile(t testing.TB, source string, flags ...string) *Program {
	t.Helper()
	flags = append([]string{"-nostdlib", "-static", "-no-pie", "-fno-inline", "-fcf-protection=none", "-fno-stack-protector", "-Wl,-e,main"}, flags...)
	image, err := cfg.OpenImage(gcctest.C(t, source, flags...), 0)
	if err != nil {
		t.Fatal(err)
	}
	return &Program{
		Image: image, Log: blocktrace.NewLog(nil), test: t, memory: map[uint64]byte{}, blocks: map[uint64]*vex.Block{},
		numbers: map[uint64]int{}, code: map[uint64][]byte{},
	}
}

// Load implements vex.Memory.
func (p *Program) Load(addr uint64, b []byte) error {
	p.Image.Read(addr, b)
	for i := range b {
		if v, changed := p.memory[addr+uint64(i)]; changed {
			b[i] = v
		}
	}
	return nil
}

// Store implements vex.Memory.
func (p *Program) Store(addr uint64, b []byte) error {
	for i, v := range b {
		p.memory[addr+uint64(i)] = v
	}
	return nil
}

// Call executes a function with integer arguments as a piece of a thread, and returns its
// result.
func (p *Program) Call(id arch.ThreadID, function string, args ...uint64) uint64 {
	p.test.Helper()
	y, known := p.Image.FunctionNamed(function)
	if !known {
		p.test.Fatalf("no function %s", function)
	}
	m := &vex.Machine{Memory: p}
	registers := []int{arch.RDI, arch.RSI, arch.RDX}
	for i, x := range args {
		m.State.SetWord(vex.OffsetRAX+8*registers[i], x)
	}
	m.State.SetWord(vex.OffsetRAX+8*arch.RSP, StackTop)
	m.State.SetWord(vex.OffsetDFlag, 1)
	if err := p.Store(StackTop, binary.LittleEndian.AppendUint64(nil, returnAddress)); err != nil {
		p.test.Fatal(err)
	}
	p.Log.BeginPiece(id, 0, p.pieces)
	p.pieces++
	for pc := y.Addr; pc != returnAddress; {
		b, err := p.lift(pc)
		if err != nil {
			p.test.Fatal(err)
		}
		if pc, _, err = m.Run(b); err != nil {
			p.test.Fatal(err)
		}
		p.Log.TraceBlock(&concolic.BlockExecution{Thread: id, Number: p.numbers[b.Addr], Block: b, Code: p.code[b.Addr], Machine: m})
	}
	return m.State.Word(vex.OffsetRAX)
}

// lift returns the block at an address.
func (p *Program) lift(pc uint64) (*vex.Block, error) {
	if b := p.blocks[pc]; b != nil {
		return b, nil
	}
	code := make([]byte, 200)
	n, _ := p.Image.Read(pc, code)
	b, err := vex.Lift(code[:n], pc)
	if err != nil {
		return nil, fmt.Errorf("code at %#x: %w", pc, err)
	}
	p.blocks[pc], p.numbers[pc], p.code[pc] = b, len(p.blocks), code[:b.Size]
	return b, nil
}
