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

// TestPanicText has outputs of Go 1.24 and of Rust 1.63 and 1.85.
func TestPanicText(t *testing.T) {
	for _, x := range []struct {
		status     int
		text, want string
	}{
		{
			2, "x\npanic: send on closed channel\n\ngoroutine 7 [running]:\nmain.work(0xc000012080)\n\t/src/w/work.go:12 +0x1d\n" +
				"created by main.main in goroutine 1\n\t/src/w/work.go:30 +0x65\nexit status 2\n",
			"panic: send on closed channel at work.go:12",
		},
		{
			2, "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [sync.Mutex.Lock]:\n" +
				"internal/sync.runtime_SemacquireMutex(0x0?, 0x0?, 0x0?)\n\t/usr/lib/go/src/runtime/sema.go:95 +0x25\n" +
				"sync.(*Mutex).Lock(...)\n\t/usr/lib/go/src/sync/mutex.go:46\nmain.main()\n\t/src/m.go:9 +0x4a\n",
			"fatal error: all goroutines are asleep - deadlock! at m.go:9",
		},
		{
			2, "panic: assignment to entry in nil map [recovered]\n\ngoroutine 1 [running]:\n" +
				"panic({0x45e2a0?, 0x47a0c0?})\n\t/usr/lib/go/src/runtime/panic.go:770 +0x132\nmain.(*set).add(0x0, 0x1)\n\t/src/set.go:5 +0x3\n",
			"panic: assignment to entry in nil map [recovered] at set.go:5",
		},
		{101, "\nthread 'main' (7) panicked at src/main.rs:3:5:\nindex out of bounds\nnote: run with\n", "panic: index out of bounds at src/main.rs:3"},
		{101, "thread '<unnamed>' panicked at 'a was 2', src/main.rs:31:9\nnote: run with\n", "panic: a was 2 at src/main.rs:31"},
	} {
		if got := panicText(x.status, []byte(x.text)); got != x.want {
			t.Errorf("status %d, %q: %q, not %q", x.status, x.text, got, x.want)
		}
	}
}
