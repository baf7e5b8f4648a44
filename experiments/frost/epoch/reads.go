package epoch

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
)

// Options choose the purpose of replicas.
type Options struct {
	// Followers is how many Followers there may be. They can be made at the same time.
	Followers int
	// Reads has replicas sum up the values that threads read, for CompareReads. All is several times
	// slower.
	Reads bool
	// Bound, if the run has published ports, is called for each with the addresses of the host that it has.
	Bound func(publish.Port, []netip.AddrPort)
	// records allows a recording.
	records bool
}

// readSums sum up the values that each thread of a replica has read outside of operations: in
// replicas of an epoch without a data race every thread does the same instructions
// with the same values. A nil readSums sums up nothing.
type readSums struct {
	buffer *memlog.Buffer
	sums   map[arch.ThreadID]uint64
	inside map[arch.ThreadID]*begunLoads
}

// newReadSums has an engine log loads, before its first run.
func newReadSums(cpu emu.CPU) (*readSums, error) {
	if err := cpu.LogMemory(memlog.Filter{Partial: true}); err != nil {
		return nil, err
	}
	return &readSums{buffer: memlog.NewBuffer()}, nil
}

func (s *readSums) closeBuffer() {
	if s != nil {
		s.buffer.Close()
	}
}

// beginEpoch forgets the reads before.
func (s *readSums) beginEpoch(cpu emu.CPU) {
	if s != nil {
		cpu.ForgetMemory()
		cpu.SwapMemory(s.buffer)
		s.sums, s.inside = map[arch.ThreadID]uint64{}, map[arch.ThreadID]*begunLoads{}
	}
}

// takeReads adds the values that a thread has read since the last call, unless it was in an
// operation, where it may have had to wait.
func (s *readSums) takeReads(cpu emu.CPU, id arch.ThreadID, inside bool) {
	if s == nil || cpu.LoggedMemory() == 0 {
		return
	}
	cpu.SwapMemory(s.buffer)
	if inside {
		return
	}
	sum := s.sums[id]
	of := s.loadsInside(id)
	var part, parts uint64
	entries := s.buffer.Entries()
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case memlog.Part:
			part, parts = e.PC, uint64(e.Addr)
			continue
		case memlog.Load:
			l := load{pc: e.PC, addr: uint64(e.Addr), size: uint64(e.Size), value: [2]uint64{e.Value}}
			if l.size > 8 {
				l.value[1] = entries[i+1].Value
			}
			if parts == 0 {
				of.loads = of.loads[:0]
				sum = l.addTo(sum)
				break
			}
			if part == 0 {
				of.loads = of.loads[:0]
			}
			if of.loads = append(of.loads, l); part == parts-1 {
				sum = of.addTo(sum)
			}
		case memlog.Store:
			if parts > 0 {
				sum = of.addTo(sum)
			}
			of.loads = of.loads[:0]
		default:
			continue
		}
		part, parts = 0, 0
	}
	s.sums[id] = sum
}

// loadsInside are the loads of the instruction that a thread is inside.
func (s *readSums) loadsInside(id arch.ThreadID) *begunLoads {
	of := s.inside[id]
	if of == nil {
		of = &begunLoads{}
		s.inside[id] = of
	}
	return of
}

// begunLoads are the loads of a thread in an instruction that others act inside. If it is
// interrupted there, it loads again.
type begunLoads struct{ loads []load }

func (b *begunLoads) addTo(sum uint64) uint64 {
	for i := range b.loads {
		sum = b.loads[i].addTo(sum)
	}
	b.loads = b.loads[:0]
	return sum
}

type load struct {
	pc, addr, size uint64
	value          [2]uint64
}

// addTo adds a load to a sum. One that lies in two cache lines counts as two, as it is logged if
// others act between them.
func (l *load) addTo(sum uint64) uint64 {
	first := arch.LineSize - l.addr%arch.LineSize
	if first >= l.size {
		return l.addPartTo(sum)
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[0:], l.value[0])
	binary.LittleEndian.PutUint64(b[8:], l.value[1])
	part := func(from, size uint64) *load {
		var v [16]byte
		copy(v[:size], b[from:])
		return &load{l.pc, l.addr + from, size, [2]uint64{binary.LittleEndian.Uint64(v[:]), binary.LittleEndian.Uint64(v[8:])}}
	}
	return part(first, l.size-first).addPartTo(part(0, first).addPartTo(sum))
}

func (l *load) addPartTo(sum uint64) uint64 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], l.pc)
	binary.LittleEndian.PutUint64(b[8:], l.addr<<8|l.size)
	binary.LittleEndian.PutUint64(b[16:], l.value[0])
	binary.LittleEndian.PutUint64(b[24:], l.value[1])
	return xxh3.HashSeed(b[:], sum)
}

// threadReads are the sums of the threads that live at the end of the replica, and of those that have ended
// themselves or their process. A thread that another one ended may have been anywhere.
type threadReads map[arch.ThreadID]uint64

// currentReads returns the sums, or nil if they are not asked for.
func (t *tap) currentReads() threadReads {
	if t.reads == nil {
		return nil
	}
	reads := threadReads{}
	for _, task := range t.m.Kernel().Tasks() {
		reads[task.ID()] = t.reads.sums[task.ID()]
	}
	for _, id := range slices.Concat(sortedThreads(t.gone), sortedThreads(t.exits)) {
		reads[id] = t.reads.sums[id]
	}
	return reads
}

// CompareReads reports whether the threads of two replicas have read the same, if that was asked for, and
// the first that has not. Threads that another thread ended in one of the replicas are left out.
func CompareReads(a, b *Replica) (thread arch.ThreadID, same bool) {
	for _, id := range sortedThreads(a.reads) {
		if other, ok := b.reads[id]; ok && other != a.reads[id] {
			return id, false
		}
	}
	return 0, true
}
