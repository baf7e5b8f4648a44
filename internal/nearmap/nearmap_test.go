package nearmap_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/internal/nearmap"
)

// Invariant 1: it is a map, whatever was looked up before, and so is its copy.
func TestLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m nearmap.Map[int32, *int]
		model := map[int32]*int{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			key := rapid.Int32Range(-2, 40).Draw(t, "key")
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				value := new(int)
				m.Put(key, value)
				model[key] = value
			case 1:
				m.Delete(key)
				delete(model, key)
			}
			want, has := model[key]
			if got, ok := m.Get(key); got != want || ok != has || m.At(key) != want || m.Len() != len(model) {
				t.Fatalf("%d: %p, %t, of %d; want %p, %t, of %d", key, got, ok, m.Len(), want, has, len(model))
			}
		}
		if !maps.Equal(maps.Collect(m.All()), model) {
			t.Fatal("other keys than were put")
		}
		same := deepcopy.Copy(deepcopy.New(), &m)
		for key, value := range same.All() {
			if got := same.At(key); got != value || got == m.At(key) {
				t.Fatalf("%d: the copy has %p, and %p in its list; the original has %p", key, got, value, m.At(key))
			}
		}
	})
}
