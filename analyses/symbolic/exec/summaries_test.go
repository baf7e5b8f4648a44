package exec

import (
	"strings"
	"testing"
)

// strtol(3), and what a conversion to int leaves of it.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "2": 2, " \t\n42x": 42, "-7": -7, "+9": 9, "0x10": 0, "--3": 0, "007": 7, "12 13": 12,
		"9223372036854775807": 1<<63 - 1, "9223372036854775808": 1<<63 - 1, "-9223372036854775808": -1 << 63, "-99999999999999999999": -1 << 63,
	} {
		wide, narrow := Derived{Summary: Summary{Result: "number", Bits: 64}}, Derived{Summary: Summary{Result: "number", Bits: 32}}
		if got := int64(wide.Value([]byte(text)).Lo); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
		if got := int32(narrow.Value([]byte(text)).Lo); got != int32(want) {
			t.Errorf("%q: %d, want %d", text, got, int32(want))
		}
	}
	length := Derived{Summary: Summary{Result: "length", Bits: 64}}
	if got := length.Value([]byte("four")).Lo; got != 4 {
		t.Errorf("%d", got)
	}
}

func TestSummariesAreChecked(t *testing.T) {
	if len(DefaultSummaries()) < 10 {
		t.Error("too few summaries")
	}
	for _, c := range []struct{ text, want string }{
		{"- {function: f, result: square, bits: 32}", "known results are"},
		{"- {result: number, bits: 32}", `function ""`},
		{"- {function: f, result: number, bits: 31}", "bits: 31"},
		{"- {function: f, result: none, colour: 3}", "colour"},
		{"- {function: f, result: find, bits: 64, size: 7}", "size: 7"},
	} {
		if _, err := ReadSummaries(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
