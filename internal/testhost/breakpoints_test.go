package testhost

import "testing"

// TestHasBreakpoints demands one answer from two trials, and that the variable is heeded.
// Whether the answer is right shows where it is used: a program that needs breakpoints
// prints its recorded output natively on a host that has them.
func TestHasBreakpoints(t *testing.T) {
	first, err := tryBreakpoints()
	if err != nil {
		t.Fatal(err)
	}
	second, err := HasBreakpoints()
	if err != nil || first != second {
		t.Errorf("%v, then %v, %v", first, second, err)
	}
	t.Logf("hardware breakpoints: %v", first)
	for _, text := range []string{"breakpoints", "more,breakpoints"} {
		t.Setenv(lacks, text)
		if has, err := HasBreakpoints(); has || err != nil {
			t.Errorf("%s=%s: %v, %v", lacks, text, has, err)
		}
	}
}
