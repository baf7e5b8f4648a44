package syncops

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// shape gives the meaning of the arguments of an allocator's function, numbered from 1; 0 is
// none.
type shape struct {
	op        event.HeapOp
	old, size int8
	times     int8 // multiplies the size
	into      int8 // where the new block's address is written, instead of returned
}

// shapes are malloc(3), posix_memalign(3) and the functions on those pages.
var shapes = map[string]shape{
	"malloc":         {op: event.HeapAllocate, size: 1},
	"calloc":         {op: event.HeapAllocate, size: 1, times: 2},
	"realloc":        {op: event.HeapResize, old: 1, size: 2},
	"reallocarray":   {op: event.HeapResize, old: 1, size: 2, times: 3},
	"memalign":       {op: event.HeapAllocate, size: 2},
	"aligned_alloc":  {op: event.HeapAllocate, size: 2},
	"posix_memalign": {op: event.HeapAllocate, size: 3, into: 1},
	"valloc":         {op: event.HeapAllocate, size: 1},
	"pvalloc":        {op: event.HeapAllocate, size: 1},
	"free":           {op: event.HeapFree, old: 1},
	"cfree":          {op: event.HeapFree, old: 1},
}

// allocators are the functions of shapes, by name.
func allocators() map[string]*function {
	all := map[string]*function{}
	for name, s := range shapes {
		all[name] = &function{name: name, kind: allocator, heap: &s}
	}
	return all
}

// orderedAllocators are allocators as operations (Config.Schedules).
func orderedAllocators() map[string]*function {
	all := allocators()
	for _, f := range all {
		f.kind, f.op, f.success = operation, event.OpAllocate, always
	}
	return all
}

// allocates reports whether the thread is in an allocator's function.
func (t *thread) allocates() bool {
	n := len(t.frames)
	return n > 0 && t.frames[n-1].function != nil && t.frames[n-1].function.kind == allocator
}

// enterAllocator records the call of an allocator's function.
func (r *Recognizer) enterAllocator(t *thread, f *frame, at *event.Stamp) {
	if t.allocates() {
		return
	}
	f.silent = true
	r.pushFrame(t, f)
	r.emitHeap(t, f, at, event.Enter, 0)
}

func (r *Recognizer) emitHeap(t *thread, f *frame, at *event.Stamp, phase event.Phase, block uint64) {
	s := f.function.heap
	arg := func(n int8) uint64 {
		if n == 0 {
			return 0
		}
		return f.args[n-1]
	}
	e := event.Heap{
		Stamp: *at, Op: s.op, Phase: phase, Old: arch.Addr(arg(s.old)), Size: arg(s.size), Addr: arch.Addr(block),
		PC: arch.Addr(f.ret),
	}
	e.Thread = t.id
	if s.times > 0 {
		e.Size *= arg(s.times)
	}
	r.sink.AddAllocation(&e)
}

// allocated records the return of an allocator's function.
func (r *Recognizer) allocated(t *thread, f *frame, rax uint64, at *event.Stamp) {
	s := f.function.heap
	block := rax
	switch {
	case s.op == event.HeapFree:
		block = 0
	case s.into > 0 && rax != 0:
		block = 0
	case s.into > 0:
		block, _ = r.readWord(t.space.as, arch.Addr(f.args[s.into-1]), 8)
	}
	r.emitHeap(t, f, at, event.Return, block)
}
