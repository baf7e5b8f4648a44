package flagvalue

import (
	"reflect"
	"testing"
)

// TestTexts: texts are taken and refused as the help says, the last one counts, and those of lists add
// up.
func TestTexts(t *testing.T) {
	for _, x := range []struct {
		value       func() *Value
		good, wrong []string
		content     any
	}{
		{Text("KIND"), []string{"a", "b"}, nil, "b"},
		{Number, []string{"0", "18446744073709551615"}, []string{"-1", "x", "18446744073709551616"}, "18446744073709551615"},
		{Positive, []string{"1"}, []string{"0", "-1"}, "1"},
		{PositiveFraction, []string{"0.5"}, []string{"0", "half"}, "0.5"},
		{Fraction, []string{"0"}, []string{"half"}, "0"},
		{Yes, []string{"true", "false"}, []string{"yes"}, "false"},
		{Size, []string{"512M"}, []string{"much"}, "512M"},
		{Mounts, []string{"/a:/b", "/c:/d:rw"}, []string{"a"}, []string{"/a:/b", "/c:/d:rw"}},
		{Ports, []string{"8080:80"}, []string{"port"}, []string{"8080:80"}},
		{GuestPorts, []string{"80", "65535"}, []string{"0", "65536", "http"}, []string{"80", "65535"}},
		{Variables, []string{"A=1", "B="}, []string{"A", "=1"}, []string{"A=1", "B="}},
	} {
		value := x.value()
		for _, text := range x.wrong {
			if value.Set(text) == nil {
				t.Errorf("%s takes %q", value.Type(), text)
			}
		}
		for _, text := range x.good {
			if err := value.Set(text); err != nil {
				t.Errorf("%s refuses %q: %v", value.Type(), text, err)
			}
		}
		if !reflect.DeepEqual(value.Content(), x.content) {
			t.Errorf("%s has %v, should have %v", value.Type(), value.Content(), x.content)
		}
	}
}
