package partialorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Functions names functions of libraries whose operations need special treatment.
type Functions struct {
	// Memory and Files are functions with locks of their own: those of allocators, and those of
	// standard input and output.
	Memory, Files []event.ObjectID
}

// SharedInSnapshot marks that it does not change.
func (*Functions) SharedInSnapshot() {}

// entity is an object with a vector clock of its own. Steps that share it have no order among
// themselves, only with those that do not share it.
type entity struct {
	kind   entityKind
	shared bool
	id     event.ObjectID
}

// entityKey identifies the state of an entity.
type entityKey struct {
	kind entityKind
	id   event.ObjectID
}

func (e *entity) key() entityKey { return entityKey{e.kind, e.id} }

type entityKind uint8

const (
	syncEntity   entityKind = iota
	memoryEntity            // the address space and the allocator
	kernelEntity            // everything else in the kernel; calls that act on a file alone share it
	fileEntity              // the content, times and offsets of a regular file
	exitEntity              // whether a thread exits or is detached
)

var (
	memoryOnly      = []entity{{kind: memoryEntity}}
	kernelOnly      = []entity{{kind: kernelEntity}}
	memoryAndKernel = []entity{{kind: memoryEntity}, {kind: kernelEntity}}
)

// entitiesOfOperation lists the entities that an operation acts on.
func (s *Functions) entitiesOfOperation(e *event.Sync) []entity {
	switch e.Op {
	case event.OpCustom, event.OpCustomAcquire, event.OpCustomRelease:
		if slices.Contains(s.Memory, e.Object) {
			return memoryOnly
		}
		if slices.Contains(s.Files, e.Object) {
			return memoryAndKernel
		}
	}
	var list []entity
	switch e.Op {
	case event.OpDetach, event.OpC11ThrdDetach:
		list = append(slices.Clone(memoryAndKernel), exitEntityOf(e.Peer))
	case event.OpPthreadExit, event.OpC11ThrdExit, event.OpTestCancel:
		return nil // it may never return
	case event.OpCreate, event.OpC11ThrdCreate, event.OpJoin, event.OpTryJoin, event.OpTimedJoin, event.OpClockJoin,
		event.OpC11ThrdJoin, event.OpFork, event.OpCancel,
		event.OpSemOpen, event.OpSemClose, event.OpSemUnlink:
		list = slices.Clone(memoryAndKernel)
	}
	if e.Object != 0 {
		list = append(list, entity{kind: syncEntity, id: e.Object})
	}
	if e.Second != 0 && e.Second != e.Object {
		list = append(list, entity{kind: syncEntity, id: e.Second})
	}
	return list
}

// usesFiles reports whether an operation is a function of standard input and output, which may have
// written something before it waits.
func (s *Functions) usesFiles(o *Step) bool {
	return o.Op == event.OpCustom && slices.Contains(s.Files, o.Object)
}

// exitEntityOf returns the entity for the exit of a thread.
func exitEntityOf(t arch.ThreadID) entity { return entity{kind: exitEntity, id: event.ObjectID(t)} }

// entitiesOfCall lists the entities that a system call acts on, which acts on a file alone unless that
// is 0. Calls that act on the address space
// do not commute (section 3.1). No order says whether the memory that a call reads or writes is
// mapped.
func entitiesOfCall(number, file uint64) []entity {
	switch {
	case linux.Has(number, linux.KernelState):
		return memoryAndKernel
	case linux.Has(number, linux.AddressSpace):
		return memoryOnly
	case linux.Has(number, linux.ThreadLocal) && !IsUnordered(number):
		return nil
	case file != 0:
		return []entity{{kind: fileEntity, id: event.ObjectID(file), shared: onlyReads(number)}, {kind: kernelEntity, shared: true}}
	}
	return kernelOnly
}

// onlyReads reports whether a system call on a file changes neither its content nor an offset.
func onlyReads(number uint64) bool {
	return number == linux.Pread64 || number == linux.Preadv || number == linux.Fstat
}

// IsUnordered reports whether a system call has no place in the order: a replica may make more or
// fewer of them than another (section 3.3).
func IsUnordered(number uint64) bool { return linux.Has(number, linux.Unordered) }

// IsTimeDependent reports whether the result of a system call, and its writes, are taken from the
// first replica instead of being computed again.
func IsTimeDependent(number uint64) bool { return linux.Has(number, linux.TimeDependent) }
