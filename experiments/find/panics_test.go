package find

import "testing"

// TestPanic: what run-time systems of Go and Rust write is told apart from other texts.
func TestPanic(t *testing.T) {
	for _, x := range []struct {
		status int
		text   string
		want   bool
	}{
		{2, "panic: send on closed channel\n\ngoroutine 7 [running]:\n", true},
		{2, "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n", true},
		{101, "\nthread 'main' (7) panicked at src/main.rs:3:5:\nindex out of bounds\n", true},
		{1, "panic: send on closed channel\n\ngoroutine 7 [running]:\n", false},
		{2, "usage: panic: [options]\n", false},
		{101, "panicked\n", false},
	} {
		if got := isPanic(x.status, []byte(x.text)); got != x.want {
			t.Errorf("status %d, %q: %v", x.status, x.text, got)
		}
	}
}
