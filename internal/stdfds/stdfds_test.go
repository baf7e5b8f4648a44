package stdfds

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const variable = "HEDDLE_TEST_STDFDS"

// TestMain makes the test binary print its descriptors on descriptor 9.
func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	fmt.Fprint(os.NewFile(9, "result"), Closed())
}

func TestClosed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for redirections, want := range map[string]string{
		"":                                      "[false false false]",
		"<&-":                                   "[true false false]",
		">&-":                                   "[false true false]",
		"2>&-":                                  "[false false true]",
		"<&- >&- 2>&-":                          "[true true true]",
		"<>/dev/null >/dev/null 2>/dev/null":    "[false false false]",
		"<>/dev/null 1<>/dev/null 2<>/dev/null": "[false false false]",
	} {
		cmd := exec.Command("sh", "-c", "exec 9>&1; exec "+self+" "+redirections)
		cmd.Env = append(os.Environ(), variable+"=1")
		got, err := cmd.Output()
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", redirections, got, err, want)
		}
	}
}

type failing struct{ written int }

func (f *failing) Write(p []byte) (int, error) {
	f.written++
	return 0, os.ErrDeadlineExceeded
}

// TestOutputRemembersTheFirstFailure and does not write again.
func TestOutputRemembersTheFirstFailure(t *testing.T) {
	to := &failing{}
	o := &Output{To: to}
	for range 2 {
		if _, err := o.Write([]byte("x")); err != os.ErrDeadlineExceeded || o.Err != err {
			t.Errorf("%v, remembered %v", err, o.Err)
		}
	}
	closed := &Output{To: to, Closed: true}
	if _, err := closed.Write(nil); err != syscall.EBADF || closed.Err != err || to.written != 1 {
		t.Errorf("closed: %v, %d writes", err, to.written)
	}
}
