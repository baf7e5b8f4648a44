package find

import "regexp"

// Panics as Go's and Rust's run-time systems write them to standard error, and the exit statuses of processes that end
// by one.
var (
	panicOfGo   = regexp.MustCompile(`(?m)^(panic|fatal error): .*(\n.*)*\n\ngoroutine [0-9]+`)
	panicOfRust = regexp.MustCompile(`(?m)^thread '.*' .*panicked at `)
)

const (
	statusOfGo   = 2
	statusOfRust = 101
)

// isPanic reports whether a process that exits with a status has ended by a panic.
func isPanic(status int, stderr []byte) bool {
	switch status {
	case statusOfGo:
		return panicOfGo.Match(stderr)
	case statusOfRust:
		return panicOfRust.Match(stderr)
	}
	return false
}
