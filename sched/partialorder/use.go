package partialorder

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Use is the use of one or two objects by steps of an operation.
type Use struct {
	Op             event.SyncOp
	Object, Second event.ObjectID
	Addr           arch.Addr // of the object; 0 for a system call or signal
}

// uses are different uses of objects, in the order of the last of each.
type uses struct {
	last  map[Use]int
	count int
	newer Use
}

// usesWithin returns the uses by the steps that are under way at the start of an epoch.
func usesWithin(begin []ThreadState) *uses {
	u := &uses{last: map[Use]int{}}
	for i := range begin {
		for j := range begin[i].Within {
			u.add(&begin[i].Within[j])
		}
	}
	return u
}

func (u *uses) add(s *Step) {
	x := Use{s.Op, s.Object, s.Second, s.Addr}
	if s.Number != 0 {
		x.Addr = 0
	}
	if x == u.newer || x.Object == 0 && x.Second == 0 {
		return
	}
	u.newer = x
	u.count++
	u.last[x] = u.count
}

// list returns the uses in the order of the last of each.
func (u *uses) list() []Use {
	return slices.SortedFunc(maps.Keys(u.last), func(a, b Use) int { return cmp.Compare(u.last[a], u.last[b]) })
}
