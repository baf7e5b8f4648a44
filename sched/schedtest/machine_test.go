package schedtest

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/sched"
)

// TestMachine runs scripts on one core under round-robin with turns of 14 instructions, two blocks,
// and compares the decisions.
func TestMachine(t *testing.T) {
	for _, x := range []struct {
		name    string
		scripts [][]Op
		history []string
	}{
		{"a run that ends within its second turn", [][]Op{{Run(20)}}, []string{"1 on 0: 14", "1 on 0: 6"}},
		{"a flag that is awaited", [][]Op{{Await(1), Run(3)}, {Run(5), Set(1)}}, []string{"1 on 0: 1", "2 on 0: 6", "1 on 0: 3"}},
		{"a sleep", [][]Op{{Sleep(1000), Run(2)}}, []string{"1 on 0: 1", "timer 1051", "1 on 0: 2"}},
		{"a thread that another starts", [][]Op{{Run(2), Spawn(1)}, {Run(4)}}, []string{"1 on 0: 3", "2 on 0: 4"}},
	} {
		m := NewMachine(NewCluster(t, 1, 1, sched.Options{Policy: "rr", Quantum: 14}), x.scripts...)
		for m.Step(t) {
		}
		if !slices.Equal(m.History, x.history) {
			t.Errorf("%s: the decisions are %q, should be %q", x.name, m.History, x.history)
		}
		for i := range m.Threads {
			if !m.Threads[i].Exited() {
				t.Errorf("%s: thread %d has not exited", x.name, i+1)
			}
		}
	}
}

// TestWaits: the machine counts the instructions of others for which a runnable thread waited.
func TestWaits(t *testing.T) {
	m := NewMachine(NewCluster(t, 1, 1, sched.Options{Policy: "rr", Quantum: 7}), []Op{Run(7)}, []Op{Run(7)}, []Op{Run(7)})
	for m.Step(t) {
	}
	if m.LongestWait < 14 || m.MostRunnable != 3 {
		t.Errorf("the longest wait is %d instructions and %d threads were runnable, should be at least 14 and 3", m.LongestWait, m.MostRunnable)
	}
}
