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
	"sync"
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
	made  map[key]reflect.Value
	bound map[reflect.Type]reflect.Value // nil: the copy is for the same owner
}

// key identifies an object of the original: an address alone does not, since a
// struct and its first field share theirs.
type key struct {
	at unsafe.Pointer
	t  reflect.Type
}

// New makes a Copier.
func New() *Copier { return &Copier{made: map[key]reflect.Value{}} }

// For makes a Copier of copies for another owner: in place of each Bound value of
// the original stands the one of that type that the owner has, which must be in
// the list.
func For(owned ...Bound) *Copier {
	c := New()
	c.bound = map[reflect.Type]reflect.Value{}
	for _, x := range owned {
		c.bound[reflect.TypeOf(x)] = reflect.ValueOf(x)
	}
	return c
}

// Foreign reports whether the copy is for another owner.
func (c *Copier) Foreign() bool { return c.bound != nil }

// Bounds lists the Bound values that root reaches, one of each type, in the order
// in which a walk along the fields finds them.
func Bounds(root any) (list []Bound) {
	r := releaser{seen: map[key]bool{}, types: map[reflect.Type]bool{}}
	v := reflect.New(reflect.TypeOf(root)).Elem()
	v.Set(reflect.ValueOf(root))
	r.walk(v, traitsOf(v.Type()))
	return r.bound
}

// Copy copies v and all that it reaches.
func Copy[T any](c *Copier, v T) T {
	var out T
	from := reflect.ValueOf(&v).Elem()
	c.copyInto(reflect.ValueOf(&out).Elem(), from, traitsOf(from.Type()))
	return out
}

// Made records that copied is the copy of original, both pointers of the same type.
func (c *Copier) Made(original, copied any) {
	v := reflect.ValueOf(original)
	c.made[key{v.UnsafePointer(), v.Type()}] = reflect.ValueOf(copied)
}

// Have returns the copy of original, a pointer, if it was copied.
func (c *Copier) Have(original any) (copied any, ok bool) {
	v := reflect.ValueOf(original)
	have, ok := c.made[key{v.UnsafePointer(), v.Type()}]
	if !ok {
		return nil, false
	}
	return have.Interface(), true
}

var (
	sharedType   = reflect.TypeFor[Shared]()
	boundType    = reflect.TypeFor[Bound]()
	customType   = reflect.TypeFor[Custom]()
	releaserType = reflect.TypeFor[Releaser]()
)

// traits is the knowledge about a type, with that about the types that it is made of.
type traits struct {
	t      reflect.Type
	plain  bool          // values can be copied by assignment
	shared bool          // values are Shared
	bound  bool          // values are Bound
	custom bool          // values are Custom; a struct: pointers to it are
	deep   []fieldTraits // of a struct: the fields that assignment does not copy
	leads  bool          // a value may lead to one that is Bound or has Release
	frees  bool          // values are pointers that have Release
	elem   *traits       // of what a pointer, an array, a slice or a map has
	key    *traits       // of a map
}

// fieldTraits is a field with its number.
type fieldTraits struct {
	number int
	*traits
}

// known caches traits by reflect.Type; they never change. Those that are being made refer to each other, and become known
// together.
var (
	known  sync.Map
	making sync.Mutex
)

func traitsOf(t reflect.Type) *traits {
	if have, ok := known.Load(t); ok {
		return have.(*traits)
	}
	making.Lock()
	defer making.Unlock()
	made := map[reflect.Type]*traits{}
	of := makeTraits(t, made)
	for t, x := range made {
		known.Store(t, x)
	}
	return of
}

func makeTraits(t reflect.Type, made map[reflect.Type]*traits) *traits {
	if have, ok := known.Load(t); ok {
		return have.(*traits)
	}
	if of := made[t]; of != nil {
		return of
	}
	of := &traits{
		t:      t,
		plain:  plain(t),
		shared: t.Kind() != reflect.Interface && t.Implements(sharedType),
		bound:  t.Kind() == reflect.Pointer && t.Implements(boundType),
		custom: t.Kind() == reflect.Pointer && t.Implements(customType) ||
			t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(customType),
		leads: leads(t, map[reflect.Type]bool{}),
		frees: t.Kind() == reflect.Pointer && t.Implements(releaserType),
	}
	made[t] = of
	if of.plain {
		return of
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i).Type; !plain(f) {
				of.deep = append(of.deep, fieldTraits{i, makeTraits(f, made)})
			}
		}
	case reflect.Map:
		of.key, of.elem = makeTraits(t.Key(), made), makeTraits(t.Elem(), made)
	case reflect.Pointer, reflect.Array, reflect.Slice:
		of.elem = makeTraits(t.Elem(), made)
	}
	return of
}

// leads reports whether a value of a type may lead to one that is Bound or has Release:
// whatever an interface holds may. Types that were looked at already are left out.
func leads(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || plain(t) {
		return false
	}
	seen[t] = true
	if t.Kind() == reflect.Pointer && (t.Implements(boundType) || t.Implements(releaserType)) {
		return true
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Array, reflect.Slice:
		return leads(t.Elem(), seen)
	case reflect.Map:
		return leads(t.Key(), seen) || leads(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if leads(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// plain reports whether values of t can be copied by assignment.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// copyInto copies from to the addressable value to, both of one type.
func (c *Copier) copyInto(to, from reflect.Value, of *traits) {
	if of.plain || of.shared {
		to.Set(from)
		return
	}
	if of.bound {
		to.Set(c.boundTo(from))
		return
	}
	switch of.t.Kind() {
	case reflect.Pointer:
		c.copyPointer(to, from, of)
	case reflect.Interface:
		c.copyInterface(to, from)
	case reflect.Struct:
		if of.custom {
			panic(fmt.Sprintf("bug: deepcopy of a %s without a pointer to it", of.t))
		}
		c.copyFields(to, from, of.deep)
	case reflect.Array:
		for i := range from.Len() {
			c.copyInto(to.Index(i), from.Index(i), of.elem)
		}
	case reflect.Slice:
		c.copySlice(to, from, of)
	case reflect.Map:
		c.copyMap(to, from, of)
	default:
		if !from.IsNil() {
			panic(fmt.Sprintf("bug: deepcopy of a %s", of.t))
		}
	}
}

// boundTo is the counterpart of a Bound value in the copy.
func (c *Copier) boundTo(v reflect.Value) reflect.Value {
	if c.bound == nil || v.IsNil() {
		return v
	}
	own, ok := c.bound[v.Type()]
	if !ok {
		panic(fmt.Sprintf("bug: a copy for an owner without a %s", v.Type()))
	}
	return own
}

// copyFields copies a struct, of whose fields only those of deep need care. A
// nil in one of them is copied by the assignment.
func (c *Copier) copyFields(to, from reflect.Value, deep []fieldTraits) {
	to.Set(from)
	for _, f := range deep {
		c.copyInto(f.of(to), f.of(from), f.traits)
	}
}

// of gives access to the field, exported or not, of an addressable struct.
func (f fieldTraits) of(v reflect.Value) reflect.Value {
	return reflect.NewAt(f.t, unsafe.Pointer(v.Field(f.number).UnsafeAddr())).Elem()
}

func (c *Copier) copyPointer(to, from reflect.Value, of *traits) {
	if from.IsNil() {
		return
	}
	k := key{from.UnsafePointer(), of.t}
	if have, ok := c.made[k]; ok {
		to.Set(have)
		return
	}
	if of.custom {
		made := reflect.ValueOf(from.Interface().(Custom).CopyForSnapshot(c))
		c.made[k] = made
		to.Set(made)
		return
	}
	n := reflect.New(of.elem.t)
	c.made[k] = n
	to.Set(n)
	c.copyInto(n.Elem(), from.Elem(), of.elem)
}

func (c *Copier) copyInterface(to, from reflect.Value) {
	if from.IsNil() {
		return
	}
	v := from.Elem()
	addressable := reflect.New(v.Type()).Elem()
	addressable.Set(v)
	out := reflect.New(v.Type()).Elem()
	c.copyInto(out, addressable, traitsOf(v.Type()))
	to.Set(out)
}

func (c *Copier) copySlice(to, from reflect.Value, of *traits) {
	if from.IsNil() {
		return
	}
	n := reflect.MakeSlice(of.t, from.Len(), from.Len())
	if of.elem.plain {
		reflect.Copy(n, from)
	} else {
		for i := range from.Len() {
			c.copyInto(n.Index(i), from.Index(i), of.elem)
		}
	}
	to.Set(n)
}

func (c *Copier) copyMap(to, from reflect.Value, of *traits) {
	if from.IsNil() {
		return
	}
	k := key{from.UnsafePointer(), of.t}
	if have, ok := c.made[k]; ok {
		to.Set(have)
		return
	}
	n := reflect.MakeMapWithSize(of.t, from.Len())
	c.made[k] = n
	to.Set(n)
	for it := from.MapRange(); it.Next(); {
		n.SetMapIndex(c.copyOf(it.Key(), of.key), c.copyOf(it.Value(), of.elem))
	}
}

// copyOf copies a value that is not addressable.
func (c *Copier) copyOf(v reflect.Value, of *traits) reflect.Value {
	if of.plain || of.shared {
		return v
	}
	from := reflect.New(of.t).Elem()
	from.Set(v)
	to := reflect.New(of.t).Elem()
	c.copyInto(to, from, of)
	return to
}

// Release calls Release once on everything that root reaches and that has it,
// in the order in which a walk along the fields finds it; the members of a map
// come in no particular order.
func Release(root any) {
	r := releaser{seen: map[key]bool{}}
	v := reflect.New(reflect.TypeOf(root)).Elem()
	v.Set(reflect.ValueOf(root))
	r.walk(v, traitsOf(v.Type()))
	for _, x := range r.found {
		x.Release()
	}
}

// releaser collects before it releases, so that nothing is walked half gone.
type releaser struct {
	seen  map[key]bool
	found []Releaser
	types map[reflect.Type]bool // of bound; nil: they are not looked for
	bound []Bound
}

func (r *releaser) walk(v reflect.Value, of *traits) {
	if of.shared || !of.leads {
		return
	}
	if of.bound {
		if r.types != nil && !v.IsNil() && !r.types[of.t] {
			r.types[of.t] = true
			r.bound = append(r.bound, v.Interface().(Bound))
		}
		return
	}
	switch of.t.Kind() {
	case reflect.Pointer:
		r.walkPointer(v, of)
	case reflect.Interface:
		if !v.IsNil() {
			r.walkMember(v.Elem(), traitsOf(v.Elem().Type()))
		}
	case reflect.Struct:
		for _, f := range of.deep {
			if f.leads {
				r.walk(f.of(v), f.traits)
			}
		}
	case reflect.Array, reflect.Slice:
		if of.elem.leads {
			for i := range v.Len() {
				r.walk(v.Index(i), of.elem)
			}
		}
	case reflect.Map:
		r.walkMap(v, of)
	}
}

func (r *releaser) walkPointer(v reflect.Value, of *traits) {
	k := key{v.UnsafePointer(), of.t}
	if v.IsNil() || r.seen[k] {
		return
	}
	r.seen[k] = true
	if of.frees {
		r.found = append(r.found, v.Interface().(Releaser))
	}
	r.walk(v.Elem(), of.elem)
}

func (r *releaser) walkMap(v reflect.Value, of *traits) {
	k := key{v.UnsafePointer(), of.t}
	if v.IsNil() || r.seen[k] {
		return
	}
	r.seen[k] = true
	for it := v.MapRange(); it.Next(); {
		if of.key.leads {
			r.walkMember(it.Key(), of.key)
		}
		if of.elem.leads {
			r.walkMember(it.Value(), of.elem)
		}
	}
}

// walkMember walks a key or an element of a map, or what an interface holds, which has no address.
func (r *releaser) walkMember(v reflect.Value, of *traits) {
	if of.t.Kind() == reflect.Pointer {
		r.walk(v, of) // it needs none
		return
	}
	if of.shared || !of.leads {
		return
	}
	e := reflect.New(of.t).Elem()
	e.Set(v)
	r.walk(e, of)
}
