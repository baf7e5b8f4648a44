package epoch

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched/partialorder"
)

// CompareStates compares the outcomes of two replicas of an epoch that began at base: their
// output, the places of their threads, and the memory that either has changed
// (Frost section 3.3). If they differ it returns a description of the difference.
//
// The comparison leaves out the differences that no program can see: the insides of
// synchronization objects that were used, which show who had to wait, and stacks
// beyond their ends.
func (r *Runner) CompareStates(base *Checkpoint, a, b *Replica) (bool, string) {
	for _, compare := range []func(*Checkpoint, *Replica, *Replica) string{
		r.compareEnds, r.sameThreads, r.compareMemory,
	} {
		if why := compare(base, a, b); why != "" {
			return false, why
		}
	}
	return true, ""
}

// compareEnds compares the output, and how the run ended.
func (r *Runner) compareEnds(_ *Checkpoint, a, b *Replica) string {
	switch {
	case !slices.EqualFunc(a.Output, b.Output, func(x, y Output) bool { return x.FD == y.FD && bytes.Equal(x.Data, y.Data) }):
		return "the output"
	case a.End.snapshot.Clients() != nil && !a.End.snapshot.Clients().SeeSame(b.End.snapshot.Clients()):
		return "the data sent to clients"
	case a.End.ended != b.End.ended || a.End.outcome != b.End.outcome:
		return "whether the program ends"
	case !maps.Equal(a.sent, b.sent):
		return "the data written to files"
	}
	if x, y := a.End.kernelState(), b.End.kernelState(); a.End.ended {
		code, signal := x.Status()
		if otherCode, otherSignal := y.Status(); code != otherCode || signal != otherSignal {
			return "the exit status"
		}
	}
	return ""
}

func (c *Checkpoint) kernelState() *kernel.Kernel { return c.snapshot.Kernel() }

// sameThreads compares where the threads are, with their registers.
func (r *Runner) sameThreads(_ *Checkpoint, a, b *Replica) string {
	x, y := a.End.kernelState().Tasks(), b.End.kernelState().Tasks()
	if len(x) != len(y) {
		return "the number of threads"
	}
	for i := range x {
		id := x[i].ID()
		if y[i].ID() != id {
			return "the threads"
		}
		if a.End.floors[id] != b.End.floors[id] {
			return fmt.Sprintf("where thread %d is, or its registers", id)
		}
	}
	return ""
}

// compareMemory compares the memory that either has changed, process by process.
func (r *Runner) compareMemory(base *Checkpoint, a, b *Replica) string {
	hidden := hiddenSpans(a, b)
	before := liveSpaces(base.kernelState())
	other := liveSpaces(b.End.kernelState())
	mine := liveSpaces(a.End.kernelState())
	for _, pid := range sortedIDs(mine) {
		if other[pid] == nil {
			return fmt.Sprintf("process %d", pid)
		}
		for _, va := range changedPages(before[pid], mine[pid], other[pid]) {
			if at, ok := r.firstDifference(va, mine[pid], other[pid], hidden); ok {
				return fmt.Sprintf("memory of process %d at %#x", pid, uint64(at))
			}
		}
	}
	return ""
}

// liveSpaces are the address spaces of live processes.
func liveSpaces(k *kernel.Kernel) map[int32]*mm.AddressSpace {
	list := map[int32]*mm.AddressSpace{}
	for _, t := range k.Tasks() {
		list[t.Process().PID()] = t.Process().Space()
	}
	return list
}

func sortedIDs[V any](m map[int32]V) []int32 {
	return slices.Sorted(maps.Keys(m))
}

// changedPages lists the pages that either of two spaces has changed.
func changedPages(before, a, b *mm.AddressSpace) []arch.Addr {
	changed := map[arch.Addr]bool{}
	for _, s := range []*mm.AddressSpace{a, b} {
		var list []mem.Mapping
		if before != nil {
			list = s.Space().Changed(before.Space())
		} else {
			list = s.Space().Mappings(0, arch.UserEnd)
		}
		for _, m := range list {
			changed[m.Addr] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// firstDifference finds the first byte of a page that is not the same in both, but for
// the hidden parts.
func (r *Runner) firstDifference(va arch.Addr, a, b *mm.AddressSpace, hidden []span) (arch.Addr, bool) {
	p, q := a.Space().Get(va), b.Space().Get(va)
	if p == q {
		return 0, false
	}
	x, y := r.pageBytes(p), r.pageBytes(q)
	if bytes.Equal(x, y) {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(hidden, va, func(s span, va arch.Addr) int { return cmp.Compare(s.end, va+1) })
	for at := range arch.Addr(pageBytes) {
		if x[at] == y[at] {
			continue
		}
		for i < len(hidden) && hidden[i].end <= va+at {
			i++
		}
		if i == len(hidden) || va+at < hidden[i].start {
			return va + at, true
		}
	}
	return 0, false
}

// pageBytes returns the bytes of an entry's page: zeros if it has none.
func (r *Runner) pageBytes(e mem.PTE) []byte { return r.m.Memory().Bytes(e.Page()) }

// span is a piece of memory.
type span struct{ start, end arch.Addr }

// sizes are those of the types that operations are on, in bytes, by the last of
// the operations on each (bits/pthreadtypes-arch.h, bits/semaphore.h).
var sizes = []struct {
	last event.SyncOp
	size arch.Addr
}{
	{event.OpThreadExit, 0},
	{event.OpMutexUnlock, 40},
	{event.OpCondBroadcast, 48},
	{event.OpRWUnlock, 56},
	{event.OpSpinUnlock, 4},
	{event.OpBarrierWait, 32},
	{event.OpSemPost, 32},
	{event.OpOnce, 4},
	{event.OpKeyDestructor, 0},
	{event.OpC11MtxUnlock, 40},
	{event.OpC11CndBroadcast, 48},
	{event.OpC11ThrdExit, 0},
	{event.OpC11CallOnce, 4},
	{event.OpCustom, 0},
	{event.OpMutexConsistent, 40},
	{event.OpSemUnlink, 0},
	{event.OpC11MtxDestroy, 40},
	{event.OpC11CndDestroy, 48},
	{event.OpFork, 0},
}

// objectSize is how many bytes an operation's object has.
func objectSize(op event.SyncOp) arch.Addr {
	i := slices.IndexFunc(sizes, func(s struct {
		last event.SyncOp
		size arch.Addr
	},
	) bool {
		return op <= s.last
	})
	if i < 0 {
		return 0
	}
	return sizes[i].size
}

// object is a synchronization object that was used.
type object struct {
	at   arch.Addr
	size arch.Addr
}

// knownObjects are objects with those that a replica has used. The map that
// is given does not change.
func knownObjects(before map[event.ObjectID]object, used []partialorder.Use) map[event.ObjectID]object {
	objects, own := before, false
	for i := range used {
		s := &used[i]
		o := object{s.Addr, objectSize(s.Op)}
		if o.size == 0 || s.Addr == 0 || s.Object == 0 || objects[s.Object] == o {
			continue
		}
		if !own {
			own = true
			if objects = maps.Clone(before); objects == nil {
				objects = map[event.ObjectID]object{}
			}
		}
		objects[s.Object] = o
	}
	return objects
}

// hiddenSpans lists the parts that the comparison of memory leaves out, sorted, without overlaps.
func hiddenSpans(replicas ...*Replica) []span {
	var list []span
	for _, x := range replicas {
		for i := range x.used {
			for _, id := range []event.ObjectID{x.used[i].Object, x.used[i].Second} {
				for _, y := range replicas {
					if o, known := y.End.objects[id]; known {
						list = append(list, span{o.at, o.at + o.size})
					}
				}
			}
		}
		list = append(list, unusedSpans(x)...)
	}
	return mergeSpans(list)
}

// unusedSpans are the parts of stacks that are not in use, and the state of the
// operations that threads are in: the thread's descriptor keeps whether it may be cancelled.
func unusedSpans(x *Replica) (list []span) {
	k := x.End.kernelState()
	for _, t := range k.Tasks() {
		f := x.End.floors[t.ID()]
		if v, ok := t.Process().Space().Find(f.sp); ok {
			list = append(list, span{v.Start, f.sp})
		}
		if f.inside {
			list = append(list, span{f.block, f.block + syncops.ThreadDescriptorSize})
		}
	}
	for _, s := range liveSpaces(k) {
		for _, id := range sortedThreads(x.gone) {
			if v, ok := s.Find(x.gone[id]); ok {
				list = append(list, span{v.Start, v.End})
			}
		}
	}
	return list
}

func mergeSpans(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
		} else if s.start < s.end {
			out = append(out, s)
		}
	}
	return out
}
