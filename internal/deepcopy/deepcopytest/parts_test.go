package deepcopytest_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/internal/deepcopy/deepcopytest"
)

type part struct{ n int }

type whole struct {
	first, second part
	list          []part
	to            *part
	next          *whole
	any           any
}

// TestPointersToParts: pointers to fields and to elements are found, and those to whole objects are not; a copy of what is found
// has an object of its own.
func TestPointersToParts(t *testing.T) {
	const field, element = "deepcopytest_test.part in a deepcopytest_test.whole", "deepcopytest_test.part in a []deepcopytest_test.part"
	for _, x := range []struct {
		name string
		make func() *whole
		want []string
	}{
		{"none", func() *whole { w := &whole{to: &part{1}}; w.next, w.any = w, w.to; return w }, nil},
		{"a field", func() *whole { w := &whole{}; w.to = &w.second; return w }, []string{field}},
		{"the first field", func() *whole { w := &whole{}; w.to = &w.first; return w }, []string{field}},
		{"an element", func() *whole { w := &whole{list: make([]part, 3)}; w.to = &w.list[1]; return w }, []string{element}},
		{"in an interface", func() *whole { w := &whole{}; w.any = &whole{to: &w.second}; return w }, []string{field}},
	} {
		if got := deepcopytest.PointersToParts(x.make()); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
	w := &whole{}
	w.to = &w.second
	copied := deepcopy.Copy(deepcopy.New(), w)
	if copied.to.n = 5; copied.second.n == 5 {
		t.Error("the copy's pointer points to the copy's part")
	}
}
