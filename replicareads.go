package heddle

import (
	"encoding/binary"
	"maps"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// ReplicaOptions say what replicas are for.
type ReplicaOptions struct {
	// Followers is how many Followers there may be. They can be made at the same time.
	Followers int
	// Reads has replicas sum up what threads read, for SameReads. All is several times
	// slower.
	Reads bool
}

// readSums sum up what each thread of a replica has read outside of operations: in
// replicas of an epoch without a data race every thread does the same instructions
// with the same values. A nil readSums sums up nothing.
type readSums struct {
	buffer *emu.MemoryBuffer
	sums   map[event.ThreadID]uint64
}

// newReadSums has an engine log loads, before its first run.
func newReadSums(cpu *emu.CPU) (*readSums, error) {
	if err := cpu.LogMemory(emu.MemoryFilter{Partial: true}); err != nil {
		return nil, err
	}
	return &readSums{buffer: emu.NewMemoryBuffer()}, nil
}

func (s *readSums) close() {
	if s != nil {
		s.buffer.Close()
	}
}

// begin forgets what was read before.
func (s *readSums) begin(cpu *emu.CPU) {
	if s != nil {
		cpu.ForgetMemory()
		cpu.SwapMemory(s.buffer)
		s.sums = map[event.ThreadID]uint64{}
	}
}

// take adds what a thread has read since the last call, unless it was in an
// operation, where it may have had to wait.
func (s *readSums) take(cpu *emu.CPU, id event.ThreadID, inside bool) {
	if s == nil || cpu.LoggedMemory() == 0 {
		return
	}
	cpu.SwapMemory(s.buffer)
	if inside {
		return
	}
	var b [24]byte
	sum, load := s.sums[id], false
	entries := s.buffer.Entries()
	for i := range entries {
		e := &entries[i]
		load = e.Kind == emu.MemoryLoad || load && e.Kind == emu.MemoryHigh
		if load {
			binary.LittleEndian.PutUint64(b[0:], e.PC)
			binary.LittleEndian.PutUint64(b[8:], uint64(e.Addr)<<8|uint64(e.Size))
			binary.LittleEndian.PutUint64(b[16:], e.Value)
			sum = xxh3.HashSeed(b[:], sum)
		}
	}
	s.sums[id] = sum
}

// soFar is what was summed up, by thread.
func (s *readSums) soFar() map[event.ThreadID]uint64 {
	if s == nil {
		return nil
	}
	return maps.Clone(s.sums)
}

// SameReads tells whether all threads of two replicas have read the same, if that was
// asked for, and the first that has not.
func SameReads(a, b *Replica) (thread event.ThreadID, same bool) {
	for _, id := range sortedThreads(a.reads) {
		if b.reads[id] != a.reads[id] {
			return id, false
		}
	}
	return 0, maps.Equal(a.reads, b.reads)
}
