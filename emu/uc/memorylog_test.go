package uc

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// memoryLog is the log of a bench, and a model of memory that follows it.
type memoryLog struct {
	*bench
	buffer *memlog.Buffer
	pages  map[uint64]*[arch.PageSize]byte
	mapped map[arch.Addr]uint64
	lines  []string // the accesses
	counts map[memlog.Kind]int
	part   bool // the log is incomplete for the model
}

func (b *bench) logMemory(f memlog.Filter) *memoryLog {
	b.Helper()
	if err := b.cpu.LogMemory(f); err != nil {
		b.Fatal(err)
	}
	m := &memoryLog{
		bench: b, buffer: memlog.NewBuffer(), pages: map[uint64]*[arch.PageSize]byte{}, mapped: map[arch.Addr]uint64{},
		counts: map[memlog.Kind]int{}, part: f.Partial || len(f.Code) > 0,
	}
	b.Cleanup(m.buffer.Close)
	return m
}

// run runs until a stop other than a full log, and takes the log.
func (m *memoryLog) runToStop(l arch.Limit) arch.Stop {
	s := m.cpu.Run(l)
	m.takeLog()
	for s.Reason == arch.StopLog {
		s = m.cpu.Resume()
		m.takeLog()
	}
	return s
}

func (m *memoryLog) takeLog() {
	m.cpu.SwapMemory(m.buffer)
	entries := m.buffer.Entries()
	for i := range entries {
		e := &entries[i]
		m.counts[e.Kind]++
		switch e.Kind {
		case memlog.Load, memlog.Store:
			value := binary.LittleEndian.AppendUint64(nil, e.Value)
			if e.Size > 8 {
				value = binary.LittleEndian.AppendUint64(value, entries[i+1].Value)
			}
			m.addAccess(e, value[:e.Size])
		case memlog.Map:
			m.mapped[e.Addr] = e.PC
		case memlog.Zero:
			m.pages[e.PC] = &[arch.PageSize]byte{}
		case memlog.Content:
			m.pages[e.PC] = (*[arch.PageSize]byte)(m.buffer.Bytes(e))
			copied := *m.pages[e.PC]
			m.pages[e.PC] = &copied
		case memlog.Copy:
			copied := *m.pages[e.Value]
			m.pages[e.PC] = &copied
		case memlog.Kernel:
			if e.Flags&memlog.FlagLater == 0 {
				copy(m.pages[e.PC][e.Addr%arch.PageSize:], m.buffer.Bytes(e))
			}
		}
	}
}

func (m *memoryLog) addAccess(e *memlog.Entry, value []byte) {
	letter := "L"
	if e.Kind == memlog.Store {
		letter = "S"
	}
	if e.Flags&memlog.FlagAtomic != 0 {
		letter += "a"
	}
	line := fmt.Sprintf("%x %s %x", e.PC, letter, e.Addr)
	for _, b := range slices.Backward(value) {
		line += fmt.Sprintf(" %02x", b)
	}
	m.lines = append(m.lines, line)
	if m.part {
		return
	}
	for i, v := range value {
		at := e.Addr + arch.Addr(i)
		page, ok := m.mapped[at&^(arch.PageSize-1)]
		if !ok || m.pages[page] == nil {
			m.Fatalf("%s: nothing is known of the page at %#x", line, at)
		}
		b := &m.pages[page][at%arch.PageSize]
		if e.Kind == memlog.Store {
			*b = v
		} else if *b != v {
			m.Fatalf("%s: the model has %02x at %#x", line, *b, at)
		}
	}
}

func BenchmarkMemoryLog(b *testing.B) {
	m := newBench(b, `mov rbx, 0x600000
		mov rcx, 1000000
		1: add rax, [rbx]
		xor rdx, rax
		mov [rbx+8], rdx
		dec rcx
		jnz 1b
		syscall`)
	if err := m.cpu.LogMemory(memlog.Filter{}); err != nil {
		b.Fatal(err)
	}
	spare := memlog.NewBuffer()
	defer spare.Close()
	for b.Loop() {
		m.changeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase) })
		s := m.cpu.Run(arch.Limit{})
		for s.Reason == arch.StopLog {
			m.cpu.SwapMemory(spare)
			s = m.cpu.Resume()
		}
		b.ReportMetric(float64(s.Instructions)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Minstr/s")
	}
}
