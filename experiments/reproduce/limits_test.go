package reproduce

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/smt"
)

// failingTrace records the first failing run of the bounded buffer.
func failingTrace(t *testing.T, bin string) string {
	t.Helper()
	path, _, failed := record(t, &bugs[0], bin, 1, nil)
	if !failed {
		t.Fatal("seed 1 does not fail")
	}
	return path
}

// clock is a clock that stands still until it is told to be late.
type clock struct{ late bool }

func (c *clock) now() time.Time {
	if c.late {
		return time.Unix(3600, 0)
	}
	return time.Unix(0, 0)
}

// Write makes it late when the formula is written: behind the paths, before a schedule
// is looked for.
func (c *clock) Write(b []byte) (int, error) {
	c.late = true
	return len(b), nil
}

// Limits of time hold at every step, that of memory while the solver works, and what
// was reached is said.
func TestLimitsHold(t *testing.T) {
	path := failingTrace(t, build(t, bugs[0].program))
	past, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := Open(past, path); err == nil || !strings.Contains(err.Error(), "the time was over while "+readingPaths) {
		t.Errorf("opened without time: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(gone, path); !errors.Is(err, context.Canceled) {
		t.Errorf("opened when it is not wanted: %v", err)
	}
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	calls := 0
	soon := func() time.Time { calls++; return time.Unix(int64(calls), 0) }
	if _, err := r.Reproduce(t.Context(), Options{Now: soon, Timeout: time.Second / 2}); err == nil || !strings.Contains(err.Error(), "the time was over while "+followingPaths) {
		t.Errorf("followed without time: %v", err)
	}
	for _, encoding := range []string{"h3", "heddle"} {
		c := &clock{}
		out, err := r.Reproduce(t.Context(), Options{Now: c.now, Timeout: time.Second, Formula: c, Encoding: encoding})
		if err != nil || out.Answer != smt.Unknown || out.Limit != LimitTime || !strings.Contains(out.answer(), "the time was over") {
			t.Errorf("%s without time: %+v, %v", encoding, out, err)
		}
	}
	out, err := r.Reproduce(t.Context(), Options{Now: time.Now, Memory: 1 << 20, Encoding: "h3"})
	if err != nil || out.Answer != smt.Unknown || out.Limit != LimitMemory || !strings.Contains(out.answer(), "limit of memory") {
		t.Errorf("in a mebibyte: %+v, %v", out, err)
	}
}

// A trace whose program is another one by now is refused.
func TestOtherProgram(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "program")
	install := func(program string) {
		t.Helper()
		b, err := os.ReadFile(build(t, program))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bin, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	install(bugs[0].program)
	path := failingTrace(t, bin)
	install(bugs[1].program)
	if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), bin) {
		t.Errorf("a trace of another program: %v", err)
	} else {
		t.Log(err)
	}
}

// Packets that are lost in the middle of a branch trace are found, wherever that is.
func TestLostPackets(t *testing.T) {
	path := failingTrace(t, build(t, bugs[0].program))
	for n := range 12 {
		for _, size := range []int{1, 16} {
			lossy := lost(t, path, n, 12, size)
			r, err := Open(t.Context(), lossy)
			if err == nil {
				t.Errorf("%d bytes at %d/12 are missing, and nothing is said", size, n)
				r.Close()
			} else if text := err.Error(); !strings.Contains(text, "branch trace of core") {
				t.Errorf("%d bytes at %d/12 are missing: %v", size, n, err)
			}
		}
	}
}
