package machine_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/guest/programs/conformance"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/deepcopy/deepcopytest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestStateHasNoPointersToParts: no pointer in the state of a machine points to a part of another object, since in a
// snapshot it would point to a copy of the part: a timer that is cancelled there would stay set. A wait.Queue may be a part.
func TestStateHasNoPointersToParts(t *testing.T) {
	programs := []string{
		"clocks", "cond_timedwait", "epoll_threads", "inotify_events", "locks_waiting", "mq_wait", "pipe_capacity", "ptrace_events",
		"pty_session", "sem_timed", "sysv_sem_undo", "tcp_epoll_server", "timer_threads", "timerfd", "unix_rights",
	}
	for _, p := range conformance.Programs() {
		if !testsize.Long() && !slices.Contains(programs, p.Name) || p.NativeOnly != "" {
			continue
		}
		bin, err := p.Build(true)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := machinetest.Config(t, bin)
		m, err := machine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; !m.Done() && n < 20_000 && !t.Failed(); n++ {
			if n%200 == 50 {
				for _, x := range deepcopytest.PointersToParts(m.State(), reflect.TypeFor[wait.Queue]()) {
					t.Errorf("%s: after %d steps: %s", p.Name, n, x)
				}
			}
			m.Step()
		}
		m.Close()
	}
}
