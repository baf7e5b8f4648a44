package syncops

import (
	"bytes"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// object is a synchronization object.
type object struct {
	id     event.ObjectID
	writer arch.ThreadID // who holds it for writing, or as a spin lock
	lives  int           // how often it was initialised
}

// tsdKey is a key of thread-specific data.
type tsdKey struct {
	id         event.ObjectID
	destructor arch.Addr
}

// location is where an object is: an address of one address space, or a place in
// memory that processes share.
type location struct {
	space  *space // nil for shared memory
	shared *mm.Object
	offset uint64
}

// identify is the id that belongs to a name.
func identify(name string) event.ObjectID { return event.ObjectID(xxh3.HashString(name)) }

// functionObject is the name of the object of all calls of a function.
func functionObject(name string) string { return "function:" + name }

// announceObject names an object to the sink, and returns its id.
func (r *Recognizer) announceObject(at *event.Stamp, name string, addr arch.Addr) event.ObjectID {
	id := identify(name)
	if !r.announced[id] {
		r.announced[id] = true
		r.sink.AddObject(&event.Object{Stamp: *at, ID: id, Name: name, Addr: addr})
	}
	return id
}

// objectAt finds the object at an address for a thread's operation, and gives it
// an identity if it has none, or if the operation begins a new life of it.
func (r *Recognizer) objectAt(t *thread, at *event.Stamp, addr arch.Addr, creates bool) *object {
	where := r.locateObject(t.space, addr)
	old := r.objects[where]
	if old != nil && !creates {
		return old
	}
	o := &object{writer: arch.NoThread, lives: 1}
	if old != nil {
		o.lives = old.lives + 1
	}
	o.id = r.announceObject(at, r.nameOf(t, addr, creates, o.lives), addr)
	r.objects[where] = o
	return o
}

// forgetObject ends an object's life. Where the place is the name, lives are counted
// on.
func (r *Recognizer) forgetObject(s *space, addr arch.Addr) {
	where := r.locateObject(s, addr)
	o := r.objects[where]
	switch {
	case o == nil:
	case s.imageAt(addr) != nil:
		o.writer = arch.NoThread
	default:
		delete(r.objects, where)
	}
}

func (r *Recognizer) locateObject(s *space, addr arch.Addr) location {
	if r.sharing {
		if v, ok := s.as.Find(addr); ok && v.Object != nil && v.Flags&mm.Shared != 0 {
			return location{shared: v.Object, offset: v.Offset + uint64(addr-v.Start)}
		}
	}
	return location{space: s, offset: uint64(addr)}
}

// nameOf makes the name of an object that has none: by its place where the
// place does not depend on the interleaving, by the thread that makes it
// otherwise.
func (r *Recognizer) nameOf(t *thread, addr arch.Addr, creates bool, lives int) string {
	s := t.space
	if i := s.imageAt(addr); i != nil {
		name := fmt.Sprintf("%s:%s+%#x", s.label, i.label, uint64(addr)-i.bias)
		if lives > 1 {
			name = fmt.Sprintf("%s#%d", name, lives)
		}
		return name
	}
	if creates {
		t.inits++
		return fmt.Sprintf("%s:init%d", t.name, t.inits)
	}
	if owner, offset, ok := s.onStack(addr); ok {
		owner.onStack = append(owner.onStack, addr)
		return fmt.Sprintf("%s:stack%+#x", owner.name, offset)
	}
	t.uses++
	return fmt.Sprintf("%s:use%d", t.name, t.uses)
}

// Bounds on where a thread's own memory is: below the top of its stack, and
// around its thread control block.
const (
	stackReach = 8 << 20
	tlsReach   = 64 << 10
)

// onStack finds the thread on whose stack, or in whose thread-local storage,
// an address is, and the distance from the stack's top.
func (s *space) onStack(addr arch.Addr) (owner *thread, offset int64, ok bool) {
	for _, t := range s.tops {
		if addr < t.low || addr >= t.high {
			continue
		}
		if owner == nil || t.top < owner.top {
			owner = t
		}
	}
	if owner == nil || s.inHeap(addr) {
		return nil, 0, false
	}
	v, found := s.as.Find(addr)
	w, same := s.as.Find(owner.top - 1)
	if !found || !same || v.Start != w.Start {
		return nil, 0, false
	}
	return owner, int64(addr - owner.top), true
}

func (s *space) inHeap(addr arch.Addr) bool {
	return addr >= s.as.Layout.StartBrk && addr < s.as.HeapEnd()
}

// keyObject is the object of a key of thread-specific data.
func (r *Recognizer) keyObject(t *thread, at *event.Stamp, number uint32, destructor arch.Addr) *tsdKey {
	t.keys++
	k := &tsdKey{destructor: destructor}
	k.id = r.announceObject(at, fmt.Sprintf("%s:key%d", t.name, t.keys), arch.Addr(number))
	t.space.keys[number] = k
	return k
}

// threadObject is a thread as an object: create releases it and join
// acquires it.
func (r *Recognizer) threadObject(at *event.Stamp, name string) event.ObjectID {
	return r.announceObject(at, "thread:"+name, 0)
}

// semaphoreObject is a named semaphore.
func (r *Recognizer) semaphoreObject(at *event.Stamp, s *space, name arch.Addr) event.ObjectID {
	text, ok := readString(s.as, name)
	if !ok {
		return 0
	}
	return r.announceObject(at, "semaphore:"+text, 0)
}

// maxName bounds the names of semaphores (NAME_MAX).
const maxName = 255

// readString reads a string of the guest.
func readString(as *mm.AddressSpace, at arch.Addr) (string, bool) {
	b := make([]byte, maxName+1)
	b = b[:peekMemory(as, at, b)]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return "", false
	}
	return string(b[:end]), true
}

// readWord reads a number of the guest.
func (r *Recognizer) readWord(as *mm.AddressSpace, at arch.Addr, size int) (x uint64, ok bool) {
	b := r.bytes[:size]
	n := peekMemory(as, at, b)
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return x, n == size
}

// peekMemory reads memory without making anything resident, and returns how many
// bytes there are.
func peekMemory(as *mm.AddressSpace, at arch.Addr, b []byte) (done int) {
	for done < len(b) {
		n, why := as.Space().ReadAt(b[done:], at+arch.Addr(done))
		done += n
		if why == arch.NoFault {
			return done
		}
		n = peekAbsent(as, at+arch.Addr(done), b[done:])
		if n == 0 {
			return done
		}
		done += n
	}
	return done
}

// peekAbsent reads from a page that is not resident the bytes that the guest would find.
func peekAbsent(as *mm.AddressSpace, at arch.Addr, b []byte) int {
	v, ok := as.Find(at)
	if !ok || v.Prot == 0 {
		return 0
	}
	b = b[:min(len(b), arch.PageSize-int(at%arch.PageSize))]
	if v.Object == nil {
		clear(b)
		return len(b)
	}
	n, errno := v.Object.ReadAt(b, int64(v.Offset+uint64(at-v.Start)))
	if errno != 0 {
		return 0
	}
	return n
}
