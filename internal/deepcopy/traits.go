package deepcopy

import (
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
)

var (
	sharedType   = reflect.TypeFor[Shared]()
	boundType    = reflect.TypeFor[Bound]()
	customType   = reflect.TypeFor[Custom]()
	releaserType = reflect.TypeFor[Releaser]()
)

// traits is the knowledge about a type, with that about the types that it is made of.
type traits struct {
	t      reflect.Type
	kind   reflect.Kind
	size   uintptr
	plain  bool          // values can be copied by assignment
	shared bool          // values are Shared
	bound  bool          // values are Bound
	custom bool          // values are Custom; a struct: pointers to it are
	deep   []fieldTraits // of a struct: the fields that assignment does not copy
	leads  bool          // a value may lead to one that is Bound or has Release
	frees  bool          // values are pointers that have Release
	elem   *traits       // of what a pointer, an array, a slice or a map has
	key    *traits       // of a map
	// word is the type of the values in an interface without methods, pointerWord that of pointers to them.
	word, pointerWord unsafe.Pointer
}

// fieldTraits is a field with its place.
type fieldTraits struct {
	offset uintptr
	*traits
}

// words is an interface as it is in memory.
type words struct{ of, data unsafe.Pointer }

func wordsOf(x *any) *words { return (*words)(unsafe.Pointer(x)) }

// at gives access to a value of the type.
func (of *traits) at(p unsafe.Pointer) reflect.Value {
	var x any
	*wordsOf(&x) = words{of.pointerWord, p}
	return reflect.ValueOf(x).Elem()
}

// pointer makes an interface of a value of the type, a pointer.
func (of *traits) pointer(p unsafe.Pointer) (x any) {
	*wordsOf(&x) = words{of.word, p}
	return x
}

// element is element i of an array of values of the type.
func (of *traits) element(array unsafe.Pointer, i int) unsafe.Pointer {
	return unsafe.Add(array, uintptr(i)*of.size)
}

// assign assigns the value at from.
func (of *traits) assign(to, from unsafe.Pointer) {
	switch of.kind {
	case reflect.Pointer, reflect.Map:
		*(*unsafe.Pointer)(to) = *(*unsafe.Pointer)(from)
	case reflect.Interface:
		*(*words)(to) = *(*words)(from)
	default:
		of.at(to).Set(of.at(from))
	}
}

// held is the type of what an interface, of this type, holds; nil: nothing.
func (of *traits) held(x unsafe.Pointer) *traits {
	if (*words)(x).of == nil {
		return nil
	}
	return traitsOf(of.at(x).Elem().Type())
}

// isDirect reports whether an interface holds a value of the type itself, which is a pointer.
func (of *traits) isDirect() bool { return of.kind == reflect.Pointer || of.kind == reflect.Map }

// inside is the place of a value, of type held, that an interface of this type holds, or of a copy.
func (of *traits) inside(x unsafe.Pointer, held *traits) unsafe.Pointer {
	if held.isDirect() {
		return unsafe.Pointer(&(*words)(x).data)
	}
	n := reflect.New(held.t)
	n.Elem().Set(of.at(x).Elem())
	return n.UnsafePointer()
}

// known has the traits of types by their words; they never change. Traits that are being made refer to each other, and become known
// together, in a new map.
var (
	known  atomic.Pointer[map[unsafe.Pointer]*traits]
	making sync.Mutex
)

func init() { known.Store(&map[unsafe.Pointer]*traits{}) }

// wordOf identifies a type.
func wordOf(t reflect.Type) unsafe.Pointer { return (*words)(unsafe.Pointer(&t)).data }

func traitsOf(t reflect.Type) *traits {
	if have, ok := (*known.Load())[wordOf(t)]; ok {
		return have
	}
	making.Lock()
	defer making.Unlock()
	all := maps.Clone(*known.Load())
	of := makeTraits(t, all)
	known.Store(&all)
	return of
}

// makeTraits makes the traits of a type and of its parts, unless they are made.
func makeTraits(t reflect.Type, made map[unsafe.Pointer]*traits) *traits {
	if of := made[wordOf(t)]; of != nil {
		return of
	}
	of := &traits{
		t: t, kind: t.Kind(), size: t.Size(),
		plain:  plain(t),
		shared: t.Kind() != reflect.Interface && t.Implements(sharedType),
		bound:  t.Kind() == reflect.Pointer && t.Implements(boundType),
		custom: t.Kind() == reflect.Pointer && t.Implements(customType) ||
			t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(customType),
		leads: leads(t, map[reflect.Type]bool{}),
		frees: t.Kind() == reflect.Pointer && t.Implements(releaserType),
		word:  wordOf(t), pointerWord: wordOf(reflect.PointerTo(t)),
	}
	made[of.word] = of
	if of.plain {
		return of
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !plain(f.Type) {
				of.deep = append(of.deep, fieldTraits{f.Offset, makeTraits(f.Type, made)})
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
