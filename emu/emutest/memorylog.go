package emutest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// MemoryLog is the log of a machine, and a model of memory that follows it: each load must have the
// value that the model has.
type MemoryLog[C emu.CPU] struct {
	*Machine[C]
	Buffer *memlog.Buffer
	pages  map[uint64]*[arch.PageSize]byte
	mapped map[arch.Addr]uint64
	Lines  []string // the accesses
	Counts map[memlog.Kind]int
	part   bool // the log is incomplete for the model
	// Branches: the lines have the number of branches before the access.
	Branches bool
}

// LogMemory makes the machine log its accesses.
func (b *Machine[C]) LogMemory(f memlog.Filter) *MemoryLog[C] {
	b.Helper()
	if err := b.CPU.LogMemory(f); err != nil {
		b.Fatal(err)
	}
	m := &MemoryLog[C]{
		Machine: b, Buffer: memlog.NewBuffer(), pages: map[uint64]*[arch.PageSize]byte{}, mapped: map[arch.Addr]uint64{},
		Counts: map[memlog.Kind]int{}, part: f.Partial || len(f.Code) > 0,
	}
	b.Cleanup(m.Buffer.Close)
	return m
}

// RunToStop runs until a stop other than a full log, and takes the log.
func (m *MemoryLog[C]) RunToStop(l arch.Limit) arch.Stop {
	s := m.CPU.Run(l)
	m.TakeLog()
	for s.Reason == arch.StopLog {
		s = m.CPU.Resume()
		m.TakeLog()
	}
	return s
}

// TakeLog appends the accesses since the last call to Lines.
func (m *MemoryLog[C]) TakeLog() {
	m.CPU.SwapMemory(m.Buffer)
	entries := m.Buffer.Entries()
	for i := range entries {
		e := &entries[i]
		m.Counts[e.Kind]++
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
			m.pages[e.PC] = (*[arch.PageSize]byte)(m.Buffer.Bytes(e))
			copied := *m.pages[e.PC]
			m.pages[e.PC] = &copied
		case memlog.Copy:
			copied := *m.pages[e.Value]
			m.pages[e.PC] = &copied
		case memlog.Kernel:
			if e.Flags&memlog.FlagLater == 0 {
				copy(m.pages[e.PC][e.Addr%arch.PageSize:], m.Buffer.Bytes(e))
			}
		}
	}
}

func (m *MemoryLog[C]) addAccess(e *memlog.Entry, value []byte) {
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
	if m.Branches {
		line += fmt.Sprintf(" after %d", e.Branches)
	}
	m.Lines = append(m.Lines, line)
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

// ExpectAccesses compares the accesses since the last call with lines of the form "L 600000 11 22":
// the bytes of the value, highest first. The PCs must be those of instructions.
func (m *MemoryLog[C]) ExpectAccesses(want string) {
	m.Helper()
	var got []string
	for _, line := range m.Lines {
		_, rest, _ := strings.Cut(line, " ")
		got = append(got, rest)
	}
	m.Lines = nil
	var wanted []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			wanted = append(wanted, line)
		}
	}
	if !slices.Equal(got, wanted) {
		m.Errorf("accesses:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}
