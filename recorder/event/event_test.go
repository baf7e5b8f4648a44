package event

import (
	"fmt"
	"slices"
	"testing"
)

// TestNames: every value of a kind has a name of its own, and a number without a name prints as one.
func TestNames(t *testing.T) {
	for kind, names := range map[string][]string{
		"operations": SyncOps(), "memory": MemoryKinds(), "inputs": InputSources(), "parts": Parts(), "heap": HeapOps(),
	} {
		seen := map[string]bool{}
		for i, name := range names {
			if name == "" || seen[name] {
				t.Errorf("%s: value %d has the name %q, which is empty or another's", kind, i, name)
			}
			seen[name] = true
		}
	}
	for got, want := range map[string]string{
		OpMutexLock.String(): "mutex_lock", OpThreadReturn.String(): "thread_return", SyncOp(255).String(): "unknown",
		WholePart.String(): "whole", SignalPart.String(): "signal",
		fmt.Sprint(OpAllocate): "allocate",
	} {
		if got != want {
			t.Errorf("the name is %q, should be %q", got, want)
		}
	}
	if n := len(SyncOps()); n != int(OpSectionExit)+1 {
		t.Errorf("%d operations have names, the last is number %d", n, OpThreadReturn)
	}
}

// joins is a schedule of three threads: 1 joins 1.1 and 1.2, each of which takes a lock before.
func joins() *Schedule {
	return &Schedule{
		Threads: []string{"1", "1.1", "1.2"},
		Objects: map[ObjectID]string{1: "m", 2: "thread:1.1", 3: "thread:1.2"},
		Operations: []Operation{
			{Thread: 1, Op: OpMutexLock, Object: 1},
			{Thread: 0, Op: OpJoin, Object: 2},
			{Thread: 2, Op: OpMutexLock, Object: 1},
			{Thread: 0, Op: OpJoin, Object: 3},
			{Thread: 0, Op: OpMutexLock, Object: 1},
		},
	}
}

func TestAwaited(t *testing.T) {
	s := joins()
	if got, want := s.Awaited(), []int{5, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("threads are awaited at %v, should be %v", got, want)
	}
	s.Operations[1].Result = 3 // ESRCH
	if got, want := s.Awaited(), []int{5, 5, 3}; !slices.Equal(got, want) {
		t.Errorf("with a join that fails threads are awaited at %v, should be %v", got, want)
	}
}

func TestAlone(t *testing.T) {
	s := joins()
	if got := s.Alone(); got != 4 {
		t.Errorf("thread 1 is alone from %d, should be from 4, after both joins", got)
	}
	s.Operations[4].Thread = 2
	if got := s.Alone(); got != 5 {
		t.Errorf("a thread is alone from %d though another has the last operation", got)
	}
	s = joins()
	s.Operations = s.Operations[:3]
	if got := s.Alone(); got != 3 {
		t.Errorf("a thread is alone from %d though 1.2 is not joined", got)
	}
}

func TestDescribe(t *testing.T) {
	s := &Schedule{
		Objects: map[ObjectID]string{1: "main+0x40"},
		Operations: []Operation{
			{Op: OpMutexLock, Object: 1},
			{Op: OpCondWait, Object: 1, Part: EndPart},
			{Op: OpOnce, Part: BeginPart},
			{Part: SystemCall, Number: 39},
			{Part: StartPart},
			{Part: SignalPart, Number: 10},
		},
	}
	for i, want := range []string{
		"mutex_lock main+0x40", "the end of cond_wait main+0x40", "once", "system call 39", "the thread's start", "signal 10",
	} {
		if got := s.Describe(i); got != want {
			t.Errorf("operation %d is described as %q, should be %q", i, got, want)
		}
	}
}
