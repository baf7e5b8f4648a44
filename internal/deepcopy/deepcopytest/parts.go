// Package deepcopytest finds data that package deepcopy cannot copy rightly.
package deepcopytest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// PointersToParts lists the types of pointers that root reaches and that point to a field or an element of another object
// that root reaches: a copy has an object of its own in place of the part. Pointers to values of the allowed types are left out.
func PointersToParts(root any, allowed ...reflect.Type) []string {
	w := &walker{seen: map[target]bool{}}
	w.walk(reflect.ValueOf(root))
	slices.SortFunc(w.objects, func(a, b object) int { return cmp.Or(cmp.Compare(a.at, b.at), -cmp.Compare(a.size, b.size)) })
	found := map[string]bool{}
	var whole object // the object that reaches the furthest so far
	for _, o := range w.objects {
		if o.at < whole.at+whole.size && o.of != whole.of && !slices.Contains(allowed, o.of) {
			found[fmt.Sprintf("%s in a %s", o.of, whole.of)] = true
		}
		if o.at+o.size > whole.at+whole.size {
			whole = o
		}
	}
	var list []string
	for text := range found {
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// object is the value to which a pointer points, or the array of a slice.
type object struct {
	at, size uintptr
	of       reflect.Type
}

type target struct {
	at uintptr
	of reflect.Type
}

type walker struct {
	seen    map[target]bool
	objects []object
}

var (
	sharedType = reflect.TypeFor[deepcopy.Shared]()
	boundType  = reflect.TypeFor[deepcopy.Bound]()
	customType = reflect.TypeFor[deepcopy.Custom]()
)

// isVisited reports whether an object was visited, which it is from now on.
func (w *walker) isVisited(at uintptr, of reflect.Type, size uintptr) bool {
	k := target{at, of}
	if at == 0 || w.seen[k] {
		return true
	}
	w.seen[k] = true
	if size > 0 {
		w.objects = append(w.objects, object{at, size, of})
	}
	return false
}

func (w *walker) walk(v reflect.Value) {
	t := v.Type()
	if t.Kind() != reflect.Interface && (t.Implements(sharedType) || t.Implements(boundType)) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !w.isVisited(v.Pointer(), t.Elem(), t.Elem().Size()) && !t.Implements(customType) {
			w.walk(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			w.walk(v.Field(i))
		}
	case reflect.Slice:
		if v.Len() > 0 && w.isVisited(v.Pointer(), t, uintptr(v.Len())*t.Elem().Size()) {
			return
		}
		w.walkElements(v)
	case reflect.Array:
		w.walkElements(v)
	case reflect.Map:
		if w.isVisited(v.Pointer(), t, 0) {
			return
		}
		for it := v.MapRange(); it.Next(); {
			w.walk(it.Key())
			w.walk(it.Value())
		}
	}
}

func (w *walker) walkElements(v reflect.Value) {
	switch v.Type().Elem().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	}
}
