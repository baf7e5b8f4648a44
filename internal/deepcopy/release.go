package deepcopy

import (
	"reflect"
	"unsafe"
)

// Release calls Release once on everything that root reaches and that has it,
// in the order in which a walk along the fields finds it; the members of a map
// come in no particular order.
func Release(root any) {
	r := newReleaser()
	r.walkAny(root)
	for _, x := range r.found {
		x.Release()
	}
}

// releaser collects before it releases, so that nothing is walked half gone.
type releaser struct {
	seen  map[key]bool
	found []Releaser
	types map[*traits]bool // of bound; nil: they are not looked for
	bound []Bound
}

func newReleaser() *releaser { return &releaser{seen: make(map[key]bool, usualObjects)} }

func (r *releaser) walkAny(root any) {
	r.walk(unsafe.Pointer(&root), traitsOf(reflect.TypeFor[any]()))
}

// walk walks a value of a type.
func (r *releaser) walk(at unsafe.Pointer, of *traits) {
	if of.shared || !of.leads {
		return
	}
	if of.bound {
		r.walkBound(*(*unsafe.Pointer)(at), of)
		return
	}
	switch of.kind {
	case reflect.Pointer:
		r.walkPointer(*(*unsafe.Pointer)(at), of)
	case reflect.Interface:
		if held := of.held(at); held != nil {
			r.walk(of.inside(at, held), held)
		}
	case reflect.Struct:
		for i := range of.deep {
			if f := &of.deep[i]; f.leads {
				r.walk(unsafe.Add(at, f.offset), f.traits)
			}
		}
	case reflect.Array:
		r.walkElements(at, of.t.Len(), of.elem)
	case reflect.Slice:
		r.walkElements((*slice)(at).data, (*slice)(at).length, of.elem)
	case reflect.Map:
		r.walkMap(at, of)
	}
}

func (r *releaser) walkBound(p unsafe.Pointer, of *traits) {
	if r.types != nil && p != nil && !r.types[of] {
		r.types[of] = true
		r.bound = append(r.bound, of.pointer(p).(Bound))
	}
}

func (r *releaser) walkPointer(p unsafe.Pointer, of *traits) {
	if p == nil || !r.isNew(p, of) {
		return
	}
	if of.frees {
		r.found = append(r.found, of.pointer(p).(Releaser))
	}
	r.walk(p, of.elem)
}

// isNew reports whether a pointer or map was not walked before, and notes that it is.
func (r *releaser) isNew(p unsafe.Pointer, of *traits) bool {
	k := key{p, of}
	if r.seen[k] {
		return false
	}
	r.seen[k] = true
	return true
}

func (r *releaser) walkElements(at unsafe.Pointer, number int, of *traits) {
	if !of.leads {
		return
	}
	for i := range number {
		r.walk(of.element(at, i), of)
	}
}

func (r *releaser) walkMap(at unsafe.Pointer, of *traits) {
	m := of.at(at)
	if m.Len() == 0 || !r.isNew(m.UnsafePointer(), of) {
		return
	}
	key, element := reflect.New(of.key.t).Elem(), reflect.New(of.elem.t).Elem()
	for it := m.MapRange(); it.Next(); {
		if of.key.leads {
			key.SetIterKey(it)
			r.walk(key.Addr().UnsafePointer(), of.key)
		}
		if of.elem.leads {
			element.SetIterValue(it)
			r.walk(element.Addr().UnsafePointer(), of.elem)
		}
	}
}
