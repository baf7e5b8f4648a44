package find

import (
	"path"
	"regexp"
	"strings"

	"github.com/heddle-dmt/heddle/internal/machine"
)

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

// The parts of the texts: the message, and where the program itself was. Frames of Go's run-time system and of package
// sync come first. Rust has the message on the same line or, from version 1.73, on the next one.
var (
	messageOfGo   = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*$`)
	frameOfGo     = regexp.MustCompile(`(?m)^(\S.*)\(.*\)\n\t(\S+:[0-9]+)`)
	messageOfRust = regexp.MustCompile(`(?m)^thread '.*' .*panicked at (?:'(.*)', (\S+:[0-9]+):[0-9]+|(\S+:[0-9]+):[0-9]+:\n(.*))$`)
)

// panicText is the message of a panic and its place in the program: `panic: too much was taken at balance.go:24`.
func panicText(status int, stderr []byte) string {
	if status == statusOfRust {
		m := messageOfRust.FindSubmatch(stderr)
		if m == nil {
			return "panic"
		}
		return "panic: " + string(m[1]) + string(m[4]) + " at " + string(m[2]) + string(m[3])
	}
	text := string(messageOfGo.Find(stderr))
	_, stack, _ := strings.Cut(string(stderr), "\ngoroutine ")
	for _, frame := range frameOfGo.FindAllStringSubmatch(stack, -1) {
		if function := frame[1]; !isOfGo(function) {
			return text + " at " + path.Base(frame[2])
		}
	}
	return text
}

// isOfGo reports whether a function is of Go's own packages that raise panics for the program.
func isOfGo(function string) bool {
	for _, of := range []string{"panic", "runtime.", "sync.", "internal/", "created by "} {
		if strings.HasPrefix(function, of) {
			return true
		}
	}
	return false
}

// failureOfResult is how a run failed, as machine.Result has it; a panic has its message and place.
func failureOfResult(r *machine.Result, stderr []byte) (machine.Failure, bool) {
	f, failed := r.Failure(stderr)
	if failed && r.Outcome == machine.OutcomeExit && isPanic(r.ExitCode, stderr) {
		f.Text = panicText(r.ExitCode, stderr)
	}
	return f, failed
}
