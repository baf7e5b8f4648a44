// Package deepcopy copies whole graphs of plain data: the state of the guest's
// kernel, for snapshots. Pointers, maps and interfaces that are shared in the
// original are shared the same way in the copy.
//
// Three kinds of type take part by their own methods: Shared ones are not copied,
// Bound ones neither, unless the copy is for another owner, and Custom ones copy
// themselves. Functions and channels other than nil cannot
// be copied and panic: state that must be restorable cannot hold them.
//
// Sharing is by pointer to the whole of an object. Slices that share an array,
// and pointers to fields or elements, become independent in the copy: do not
// rely on such sharing in state that is copied.
//
// Invariant: the copy depends on the original alone; iteration over maps is
// never visible in it.
package deepcopy

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Shared marks types whose values are used by original and copy alike, such as
// handles of the host that never change.
type Shared interface{ SharedInSnapshot() }

// Bound marks types of which an owner of graphs has one value each, referred to by
// a pointer: handles like those of Shared types. A copy for another owner refers to
// that one's (For).
type Bound interface{ BoundInSnapshot() }

// Custom is implemented, on the pointer, by types that copy themselves.
// CopyForSnapshot must call Made with the new value before it copies anything
// that may refer back.
type Custom interface {
	CopyForSnapshot(c *Copier) any
}

// Releaser is implemented by types that own something outside Go's memory.
type Releaser interface{ Release() }

// Copier remembers the copied pointers. One Copier serves one copy of one
// graph.
type Copier struct {
	made  map[key]unsafe.Pointer
	bound map[*traits]unsafe.Pointer // nil: the copy is for the same owner
}

// key identifies an object of the original: an address alone does not, since a
// struct and its first field share theirs. It is of the type of the pointer or map.
type key struct {
	at unsafe.Pointer
	of *traits
}

// usualObjects is the number of objects for which there is room from the beginning.
const usualObjects = 256

// New makes a Copier.
func New() *Copier { return &Copier{made: make(map[key]unsafe.Pointer, usualObjects)} }

// For makes a Copier of copies for another owner: in place of each Bound value of
// the original stands the one of that type that the owner has, which must be in
// the list.
func For(owned ...Bound) *Copier {
	c := New()
	c.bound = map[*traits]unsafe.Pointer{}
	for _, x := range owned {
		v := reflect.ValueOf(x)
		c.bound[traitsOf(v.Type())] = v.UnsafePointer()
	}
	return c
}

// Foreign reports whether the copy is for another owner.
func (c *Copier) Foreign() bool { return c.bound != nil }

// Bounds lists the Bound values that root reaches, one of each type, in the order
// in which a walk along the fields finds them.
func Bounds(root any) (list []Bound) {
	r := newReleaser()
	r.types = map[*traits]bool{}
	r.walkAny(root)
	return r.bound
}

// Copy copies v and all that it reaches.
func Copy[T any](c *Copier, v T) T {
	var out T
	c.copyInto(unsafe.Pointer(&out), unsafe.Pointer(&v), traitsOf(reflect.TypeFor[T]()))
	return out
}

// Made records that copied is the copy of original, both pointers of the same type.
func (c *Copier) Made(original, copied any) {
	c.made[keyOf(original)] = wordsOf(&copied).data
}

// Have returns the copy of original, a pointer, if it was copied.
func (c *Copier) Have(original any) (copied any, ok bool) {
	k := keyOf(original)
	have, ok := c.made[k]
	if !ok {
		return nil, false
	}
	return k.of.pointer(have), true
}

func keyOf(pointer any) key {
	return key{wordsOf(&pointer).data, traitsOf(reflect.TypeOf(pointer))}
}

// copyInto copies a value of a type at from to the zero one at to.
func (c *Copier) copyInto(to, from unsafe.Pointer, of *traits) {
	if of.plain || of.shared {
		of.assign(to, from)
		return
	}
	if of.bound {
		*(*unsafe.Pointer)(to) = c.boundTo(*(*unsafe.Pointer)(from), of)
		return
	}
	switch of.kind {
	case reflect.Pointer:
		c.copyPointer(to, from, of)
	case reflect.Interface:
		c.copyInterface(to, from, of)
	case reflect.Struct:
		if of.custom {
			panic(fmt.Sprintf("bug: deepcopy of a %s without a pointer to it", of.t))
		}
		c.copyFields(to, from, of)
	case reflect.Array:
		for i := range of.t.Len() {
			c.copyInto(of.elem.element(to, i), of.elem.element(from, i), of.elem)
		}
	case reflect.Slice:
		c.copySlice(to, from, of)
	case reflect.Map:
		c.copyMap(to, from, of)
	default:
		if !of.at(from).IsNil() {
			panic(fmt.Sprintf("bug: deepcopy of a %s", of.t))
		}
	}
}

// boundTo is the counterpart of a Bound value in the copy.
func (c *Copier) boundTo(v unsafe.Pointer, of *traits) unsafe.Pointer {
	if c.bound == nil || v == nil {
		return v
	}
	own, ok := c.bound[of]
	if !ok {
		panic(fmt.Sprintf("bug: a copy for an owner without a %s", of.t))
	}
	return own
}

// copyFields copies a struct, of whose fields only those of deep need care. A
// nil in one of them is copied by the assignment.
func (c *Copier) copyFields(to, from unsafe.Pointer, of *traits) {
	of.assign(to, from)
	for i := range of.deep {
		f := &of.deep[i]
		c.copyInto(unsafe.Add(to, f.offset), unsafe.Add(from, f.offset), f.traits)
	}
}

func (c *Copier) copyPointer(to, from unsafe.Pointer, of *traits) {
	p := *(*unsafe.Pointer)(from)
	if p == nil {
		return
	}
	k := key{p, of}
	if have, ok := c.made[k]; ok {
		*(*unsafe.Pointer)(to) = have
		return
	}
	if of.custom {
		made := of.pointer(p).(Custom).CopyForSnapshot(c)
		if reflect.TypeOf(made) != of.t {
			panic(fmt.Sprintf("bug: the copy of a %s is a %T", of.t, made))
		}
		n := wordsOf(&made).data
		c.made[k] = n
		*(*unsafe.Pointer)(to) = n
		return
	}
	n := reflect.New(of.elem.t).UnsafePointer()
	c.made[k] = n
	*(*unsafe.Pointer)(to) = n
	c.copyInto(n, p, of.elem)
}

func (c *Copier) copyInterface(to, from unsafe.Pointer, of *traits) {
	held := of.held(from)
	if held == nil {
		return
	}
	of.assign(to, from)
	if held.plain || held.shared {
		return // what an interface holds never changes
	}
	if held.isDirect() {
		var n unsafe.Pointer
		c.copyInto(unsafe.Pointer(&n), of.inside(from, held), held)
		(*words)(to).data = n
		return
	}
	n := reflect.New(held.t)
	c.copyInto(n.UnsafePointer(), of.inside(from, held), held)
	of.at(to).Set(n.Elem())
}

// slice is a slice as it is in memory.
type slice struct {
	data   unsafe.Pointer
	length int
	_      int
}

func (c *Copier) copySlice(to, from unsafe.Pointer, of *traits) {
	old := (*slice)(from)
	if old.data == nil {
		return
	}
	n := reflect.MakeSlice(of.t, old.length, old.length)
	if of.elem.plain {
		reflect.Copy(n, of.at(from))
	} else {
		data := n.UnsafePointer()
		for i := range old.length {
			c.copyInto(of.elem.element(data, i), of.elem.element(old.data, i), of.elem)
		}
	}
	of.at(to).Set(n)
}

func (c *Copier) copyMap(to, from unsafe.Pointer, of *traits) {
	p := *(*unsafe.Pointer)(from)
	if p == nil {
		return
	}
	k := key{p, of}
	if have, ok := c.made[k]; ok {
		*(*unsafe.Pointer)(to) = have
		return
	}
	old := of.at(from)
	n := reflect.MakeMapWithSize(of.t, old.Len())
	c.made[k] = n.UnsafePointer()
	*(*unsafe.Pointer)(to) = n.UnsafePointer()
	if old.Len() == 0 {
		return
	}
	memberKey, member := newMember(of.key), newMember(of.elem)
	for it := old.MapRange(); it.Next(); {
		memberKey.from.SetIterKey(it)
		member.from.SetIterValue(it)
		n.SetMapIndex(c.copyOf(memberKey), c.copyOf(member))
	}
}

// member has room for a key or an element of a map, and for its copy.
type member struct {
	of       *traits
	from, to reflect.Value
}

func newMember(of *traits) *member {
	m := &member{of: of, from: reflect.New(of.t).Elem()}
	if !of.plain && !of.shared {
		m.to = reflect.New(of.t).Elem()
	}
	return m
}

// copyOf copies the value that the member has.
func (c *Copier) copyOf(m *member) reflect.Value {
	if m.of.plain || m.of.shared {
		return m.from
	}
	m.to.SetZero()
	c.copyInto(m.to.Addr().UnsafePointer(), m.from.Addr().UnsafePointer(), m.of)
	return m.to
}
