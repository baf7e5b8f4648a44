package machine

import (
	"fmt"
	"regexp"
	"sync"

	"golang.org/x/sys/unix"
)

// The classes of failures.
const (
	// FailureAssertion is death by SIGABRT: a check in the program, or in the C
	// library, failed.
	FailureAssertion = "assertion"
	// FailureCrash is death by another signal.
	FailureCrash = "crash"
	// FailureHang is a run that did not end within its limit of instructions.
	FailureHang = "hang"
	// FailureDeadlock is a run in which every thread waited forever.
	FailureDeadlock = "deadlock"
	// FailureWrong is a program that exited with another status than 0, or whose
	// output is wrong.
	FailureWrong = "wrong output"
)

// FailureClasses lists the classes.
func FailureClasses() []string {
	return []string{FailureAssertion, FailureCrash, FailureHang, FailureDeadlock, FailureWrong}
}

// Failure is how a run failed. Two runs that failed in the same way have equal
// Failures.
type Failure struct {
	Class string `json:"class"`
	// Text says more: the assertion, the signal, the exit status.
	Text string `json:"text,omitempty"`
}

func (f Failure) String() string {
	if f.Text == "" {
		return f.Class
	}
	return f.Class + ": " + f.Text
}

// assertionText matches the text that assert(3) of the GNU C library prints after the name of
// the program.
var assertionText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\S+:[0-9]+: .*Assertion .* failed\.`)
})

// Failure returns how the program failed; false, and a Failure without a class, if it did not,
// or if the run was ended by something else than the program. Stderr is the program's standard
// error, or its end.
func (r *Result) Failure(stderr []byte) (f Failure, failed bool) {
	switch r.Outcome {
	case OutcomeDeadlock:
		return Failure{Class: FailureDeadlock}, true
	case OutcomeLimit:
		return Failure{Class: FailureHang}, true
	case OutcomeSignal:
		if r.Signal == int(unix.SIGABRT) {
			return Failure{FailureAssertion, string(assertionText().Find(stderr))}, true
		}
		return Failure{FailureCrash, SignalName(r.Signal)}, true
	case OutcomeExit:
		if r.ExitCode != 0 {
			return Failure{FailureWrong, fmt.Sprintf("exit status %d", r.ExitCode)}, true
		}
	}
	return Failure{}, false
}
