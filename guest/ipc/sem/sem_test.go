package sem_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// sleeper counts how often it is woken.
type sleeper struct{ woken int }

func (s *sleeper) Wake(uint32) { s.woken++ }

var caller = &ipc.Caller{PID: 7, Owner: true, Admin: true, Now: 1}

func newSet(t interface{ Fatal(...any) }, y *sem.System, values ...uint16) (*sem.Set, int32) {
	id, errno := y.Get(caller, ipc.Private, len(values), 0o600)
	if errno != 0 {
		t.Fatal(errno)
	}
	s, _ := y.Find(id)
	s.SetAll(caller, values)
	return s, id
}

// waiting is an operation that waits, as a model of the rules has it.
type waiting struct {
	ops []sem.Op
	o   *sem.Operation
}

// possible reports whether operations could be carried out on values, and the result that
// these are then.
func possible(values []int, ops []sem.Op) ([]int, bool) {
	values = slices.Clone(values)
	for _, op := range ops {
		v := &values[op.Number]
		if op.Change == 0 && *v != 0 || *v+int(op.Change) < 0 {
			return nil, false
		}
		if *v += int(op.Change); *v > sem.MaxValue {
			return nil, false
		}
	}
	return values, true
}

func valuesOf(s *sem.Set) (values []int) {
	for _, v := range s.Values() {
		values = append(values, int(v))
	}
	return values
}

func drawOps(t *rapid.T, sems int) []sem.Op {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sem.Op {
		return sem.Op{Number: uint16(rapid.IntRange(0, sems-1).Draw(t, "semaphore")), Change: int16(rapid.IntRange(-3, 3).Draw(t, "change"))}
	}), 1, 3).Draw(t, "operations")
}

// TestNothingPossibleWaits makes random operations. After each of them the values
// are the sums of the operations that were carried out, and no operation that waits
// could be carried out.
func TestNothingPossibleWaits(t *testing.T) {
	const sems = 3
	rapid.Check(t, func(t *rapid.T) {
		y := sem.New(nil)
		s, id := newSet(t, y, 1, 0, 2)
		sum := valuesOf(s)
		var list []*waiting
		carriedOut := func(ops []sem.Op) {
			for _, op := range ops {
				sum[op.Number] += int(op.Change)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				if len(list) > 0 {
					at := rapid.IntRange(0, len(list)-1).Draw(t, "abandoned")
					list[at].o.Abandon()
					list = slices.Delete(list, at, at+1)
				}
			case 1:
				n, v := rapid.IntRange(0, sems-1).Draw(t, "semaphore"), rapid.IntRange(0, 3).Draw(t, "value")
				sum[n] = v
				s.SetValue(caller, n, int32(v))
			default:
				ops := drawOps(t, sems)
				_, could := possible(valuesOf(s), ops)
				o, errno := y.Do(caller, id, ops, nil, &sleeper{})
				if errno != 0 || could != (o == nil) {
					t.Fatalf("%v: waits %v, %v; possible %v", ops, o != nil, errno, could)
				}
				if o == nil {
					carriedOut(ops)
				} else {
					list = append(list, &waiting{ops, o})
				}
			}
			list = slices.DeleteFunc(list, func(w *waiting) bool {
				done, errno := w.o.Done()
				if done && errno == 0 {
					carriedOut(w.ops)
				}
				return done
			})
			if have := valuesOf(s); !slices.Equal(have, sum) {
				t.Fatalf("values %v, the operations add up to %v", have, sum)
			}
			for _, w := range list {
				if _, could := possible(sum, w.ops); could {
					t.Fatalf("%v waits at %v", w.ops, sum)
				}
			}
		}
	})
}

// TestCopiesAreIndependent copies a system with operations that wait.
func TestCopiesAreIndependent(t *testing.T) {
	type world struct {
		System *sem.System
		Waits  *sem.Operation
		Whom   *sleeper
		Undo   *sem.UndoList
	}
	w := world{System: sem.New(kmem.New(1 << 30)), Whom: &sleeper{}}
	w.Undo = w.System.NewUndoList()
	_, id := newSet(t, w.System, 0, 0)
	var errno unix.Errno
	w.Waits, errno = w.System.Do(caller, id, []sem.Op{{Number: 1, Change: -1, Flags: sem.Undo}}, w.Undo, w.Whom)
	if w.Waits == nil || errno != 0 {
		t.Fatal(errno)
	}
	n := deepcopy.Copy(deepcopy.New(), w)
	if _, errno := n.System.Do(caller, id, []sem.Op{{Number: 1, Change: 1}}, nil, nil); errno != 0 {
		t.Fatal(errno)
	}
	if done, _ := n.Waits.Done(); !done || n.Whom.woken != 1 {
		t.Error("the copy does not wait any more")
	}
	if done, _ := w.Waits.Done(); done || w.Whom.woken != 0 {
		t.Error("the original was changed by its copy")
	}
	n.Undo.Unref(caller)
	if s, _ := n.System.Find(id); s.Value(1) != 1 {
		t.Errorf("undone: %d", s.Value(1))
	}
}

// TestMemoryIsGivenBack charges sets and adjustments, and releases them in either
// order.
func TestMemoryIsGivenBack(t *testing.T) {
	for _, removedFirst := range []bool{false, true} {
		account := kmem.New(1 << 30)
		y := sem.New(account)
		s, id := newSet(t, y, 0, 0)
		list := y.NewUndoList()
		if _, errno := y.Do(caller, id, []sem.Op{{Change: 3, Flags: sem.Undo}}, list, nil); errno != 0 {
			t.Fatal(errno)
		}
		if removedFirst {
			y.Remove(s)
			list.Unref(caller)
		} else {
			list.Unref(caller)
			if s.Value(0) != 0 {
				t.Errorf("not undone: %d", s.Value(0))
			}
			y.Remove(s)
		}
		if account.Used() != 0 || y.Used() != 0 {
			t.Errorf("removed first %v: %d bytes and %d semaphores are left", removedFirst, account.Used(), y.Used())
		}
	}
	y := sem.New(kmem.New(1 << 20))
	for n := 0; ; n++ {
		if _, errno := y.Get(caller, ipc.Private, 32000, 0); errno == unix.ENOMEM {
			if n == 0 {
				t.Error("not one set fits")
			}
			return
		} else if errno != 0 {
			t.Fatal(errno)
		}
	}
}
