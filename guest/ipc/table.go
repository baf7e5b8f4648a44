package ipc

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Object is a System V object.
type Object interface {
	comparable
	Common() *Perm
}

// Table holds the objects of one kind. The zero value is empty.
type Table[T Object] struct {
	objects map[int32]T // by index
	keys    map[int32]T // by key, without private ones
	next    int32       // where the search for a free index begins
	last    int32       // the index that was given out last, plus one
	seq     uint16
}

const (
	// indexBits are the bits of an identifier that hold the index; the sequence
	// number is in those above (IPCMNI_SHIFT of Linux).
	indexBits = 15
	indexMask = 1<<indexBits - 1
	seqEnd    = 1 << (31 - indexBits)
	// minCycle is how many indices at least are given out before the first one
	// is used again (ipc_min_cycle of Linux).
	minCycle = 64
)

// Add gives an object an identifier. ENOSPC: there are limit objects.
func (t *Table[T]) Add(o T, limit int) unix.Errno {
	if len(t.objects) >= limit {
		return unix.ENOSPC
	}
	if t.objects == nil {
		t.objects, t.keys = map[int32]T{}, map[int32]T{}
	}
	p := o.Common()
	p.index = t.freeIndex(int32(min(max(len(t.objects)*3/2, minCycle), indexMask+1)))
	if p.index < t.last {
		if t.seq++; t.seq >= seqEnd-1 {
			t.seq = 0
		}
	}
	t.last = p.index + 1
	p.seq = t.seq
	p.ID = int32(p.seq)<<indexBits | p.index
	t.objects[p.index] = o
	if p.Key != Private {
		t.keys[p.Key] = o
	}
	return 0
}

// freeIndex finds a free index below end, which there is, from the one after
// the last on (idr_alloc_cyclic of Linux).
func (t *Table[T]) freeIndex(end int32) int32 {
	at := t.next
	if at >= end {
		at = 0
	}
	for {
		if _, used := t.objects[at]; !used {
			t.next = at + 1
			return at
		}
		if at++; at == end {
			at = 0
		}
	}
}

// Delete takes an object out of the table, for good.
func (t *Table[T]) Delete(o T) {
	p := o.Common()
	t.HideKey(o)
	delete(t.objects, p.index)
	p.Removed = true
}

// HideKey makes an object's key private: it is found by its identifier only.
func (t *Table[T]) HideKey(o T) {
	p := o.Common()
	if p.Key != Private {
		delete(t.keys, p.Key)
		p.Key = Private
	}
}

// Find returns the object with an identifier. EINVAL: it does not exist.
func (t *Table[T]) Find(id int32) (o T, errno unix.Errno) {
	o, ok := t.objects[id&indexMask]
	if id < 0 || !ok || o.Common().ID != id {
		var none T
		return none, unix.EINVAL
	}
	return o, 0
}

// Own returns the object with an identifier for the caller to change or remove.
// EINVAL: it does not exist. EPERM: the caller may not.
func (t *Table[T]) Own(c *Caller, id int32) (T, unix.Errno) {
	o, errno := t.Find(id)
	if errno == 0 {
		errno = o.Common().MayControl(c)
	}
	return o, errno
}

// Readable returns the object with an identifier for the caller to read.
// EINVAL: it does not exist. EACCES: the caller may not.
func (t *Table[T]) Readable(c *Caller, id int32) (T, unix.Errno) {
	o, errno := t.Find(id)
	if errno == 0 {
		errno = o.Common().Allows(c, MayRead)
	}
	return o, errno
}

// ReadableAt is Readable by the index alone; free means that permissions do not
// matter, as for the commands whose names end in STAT_ANY.
func (t *Table[T]) ReadableAt(c *Caller, id int32, free bool) (o T, errno unix.Errno) {
	o, ok := t.objects[id&indexMask]
	if !ok {
		return o, unix.EINVAL
	}
	if !free {
		errno = o.Common().Allows(c, MayRead)
	}
	return o, errno
}

// Get finds the object with a key, or makes it, as the flags say; see shmget(2).
// check is asked whether an object that exists will do.
func (t *Table[T]) Get(c *Caller, key int32, flags uint32, create func() (T, unix.Errno), check func(T) unix.Errno) (int32, unix.Errno) {
	if key != Private {
		if o, found := t.keys[key]; found {
			if flags&(Create|Exclusive) == Create|Exclusive {
				return 0, unix.EEXIST
			}
			if errno := check(o); errno != 0 {
				return 0, errno
			}
			return o.Common().ID, o.Common().Allows(c, flags)
		}
		if flags&Create == 0 {
			return 0, unix.ENOENT
		}
	}
	o, errno := create()
	if errno != 0 {
		return 0, errno
	}
	return o.Common().ID, 0
}

// Len is the number of objects.
func (t *Table[T]) Len() int { return len(t.objects) }

// HighestIndex is the highest index in use, 0 without objects, as the commands
// for information answer it.
func (t *Table[T]) HighestIndex() int32 {
	highest := int32(0)
	for index := range t.objects {
		highest = max(highest, index)
	}
	return highest
}

// List returns all objects, sorted by index.
func (t *Table[T]) List() []T {
	list := make([]T, 0, len(t.objects))
	for _, index := range slices.Sorted(maps.Keys(t.objects)) {
		list = append(list, t.objects[index])
	}
	return list
}
