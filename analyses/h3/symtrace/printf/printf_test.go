package printf

import (
	"fmt"
	"slices"
	"testing"
)

// The texts are those that the C library prints for the arguments.
func TestCompile(t *testing.T) {
	for _, c := range []struct {
		format, text string
		want         []string
		bases        []int
	}{
		{"%d of %lu\n", "-5 of 18446744073709551615\n", []string{"-5", "18446744073709551615"}, []int{10, 10}},
		{"[%4d] 100%% %#x", "[   7] 100% 0x2a", []string{"7", "2a"}, []int{10, 16}},
		{"%s: %o.", "a b: 17.", []string{"a b", "17"}, []int{0, 8}},
	} {
		r, all, ok := Compile(c.format)
		if !ok {
			t.Errorf("%q is not understood", c.format)
			continue
		}
		found := r.FindStringSubmatch(c.text)
		var bases []int
		for _, p := range all {
			bases = append(bases, p.Base)
		}
		if len(found) == 0 || !slices.Equal(found[1:], c.want) || !slices.Equal(bases, c.bases) {
			t.Errorf("%q finds %q in %q with bases %v; want %q, %v", c.format, found, c.text, fmt.Sprint(bases), c.want, c.bases)
		}
	}
	for _, format := range []string{"%f", "%*d", "%-+q", "%"} {
		if _, _, ok := Compile(format); ok {
			t.Errorf("%q is understood", format)
		}
	}
}
