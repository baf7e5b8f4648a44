package ipc_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

type object struct{ perm ipc.Perm }

func (o *object) Common() *ipc.Perm { return &o.perm }

var root = &ipc.Caller{PID: 1, Admin: true, Owner: true}

func add(t *testing.T, y *ipc.Table[*object], key int32) *object {
	t.Helper()
	o := &object{ipc.NewPerm(root, key, 0o600)}
	if errno := y.Add(o, 32000); errno != 0 {
		t.Fatal(errno)
	}
	return o
}

// TestIdentifiers expects the numbers that msgget of Linux 6.18 gives out in a
// new namespace (unshare --ipc).
func TestIdentifiers(t *testing.T) {
	var y ipc.Table[*object]
	var got []int32
	for range 3 {
		got = append(got, add(t, &y, ipc.Private).perm.ID)
	}
	for range 64 {
		o := add(t, &y, ipc.Private)
		got = append(got, o.perm.ID)
		y.Delete(o)
	}
	var kept []*object
	for range 100 {
		kept = append(kept, add(t, &y, ipc.Private))
		got = append(got, kept[len(kept)-1].perm.ID)
	}
	y.Delete(kept[10])
	y.Delete(kept[11])
	for range 4 {
		got = append(got, add(t, &y, ipc.Private).perm.ID)
	}
	for at, want := range map[int]int32{
		0: 0, 2: 2, 3: 3, 62: 62, 63: 63, 64: 32771, 66: 32773, 67: 32774, 125: 32832, 126: 32833, 166: 32873,
		167: 32874, 170: 32877,
	} {
		if got[at] != want {
			t.Errorf("object %d has identifier %d, want %d", at, got[at], want)
		}
	}
	if y.HighestIndex() != 32877-32768 {
		t.Errorf("highest index %d", y.HighestIndex())
	}
}

// TestIdentifiersFindWhatIsThere adds and deletes at random: an identifier finds
// its object until that is deleted, and nothing afterwards.
func TestIdentifiersFindWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var y ipc.Table[*object]
		var live, dead []*object
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) == 0 || rapid.Bool().Draw(t, "add") {
				o := &object{ipc.NewPerm(root, int32(i), 0)}
				if errno := y.Add(o, 100); errno != 0 {
					t.Fatal(errno)
				}
				live = append(live, o)
			} else {
				at := rapid.IntRange(0, len(live)-1).Draw(t, "delete")
				y.Delete(live[at])
				dead = append(dead, live[at])
				live = slices.Delete(live, at, at+1)
			}
			if y.Len() != len(live) || len(y.List()) != len(live) {
				t.Fatalf("%d objects, want %d", y.Len(), len(live))
			}
			for _, o := range live {
				if have, errno := y.Find(o.perm.ID); have != o || errno != 0 {
					t.Fatalf("identifier %d: %v", o.perm.ID, errno)
				}
			}
			for _, o := range dead {
				if have, _ := y.Find(o.perm.ID); have != nil || !o.perm.Removed {
					t.Fatalf("identifier %d of a deleted object finds one", o.perm.ID)
				}
			}
		}
	})
}

func TestKeys(t *testing.T) {
	var y ipc.Table[*object]
	get := func(key int32, flags uint32) (int32, unix.Errno) {
		return y.Get(root, key, flags, func() (*object, unix.Errno) {
			o := &object{ipc.NewPerm(root, key, flags)}
			return o, y.Add(o, 3)
		}, func(o *object) unix.Errno { return 0 })
	}
	for _, step := range []struct {
		key   int32
		flags uint32
		id    int32
		errno unix.Errno
	}{
		{7, 0, 0, unix.ENOENT},
		{7, ipc.Create, 0, 0},
		{7, ipc.Create, 0, 0},
		{7, ipc.Create | ipc.Exclusive, 0, unix.EEXIST},
		{ipc.Private, 0, 1, 0},
		{ipc.Private, ipc.Create | ipc.Exclusive, 2, 0},
		{8, ipc.Create, 0, unix.ENOSPC},
	} {
		if id, errno := get(step.key, step.flags); errno != step.errno || errno == 0 && id != step.id {
			t.Errorf("key %d, flags %#o: %d, %v; want %d, %v", step.key, step.flags, id, errno, step.id, step.errno)
		}
	}
	o, _ := y.Find(0)
	y.HideKey(o)
	if _, errno := get(7, 0); errno != unix.ENOENT || o.perm.Key != ipc.Private {
		t.Errorf("a hidden key finds something: %v", errno)
	}
	if have, errno := y.Find(0); have != o || errno != 0 {
		t.Errorf("an object without a key: %v", errno)
	}
}

// TestPermissions follows ipcperms of Linux: the digit of the caller alone counts.
func TestPermissions(t *testing.T) {
	owner := &ipc.Caller{EUID: 10, EGID: 20, FSGID: 20}
	p := ipc.NewPerm(owner, 1, ipc.Create|0o462)
	p.UID, p.GID = 11, 21
	if p.Mode != 0o462 {
		t.Errorf("mode %o", p.Mode)
	}
	for _, c := range []struct {
		who         ipc.Caller
		read, write bool
	}{
		{ipc.Caller{EUID: 10, FSGID: 20}, true, false},
		{ipc.Caller{EUID: 11}, true, false},
		{ipc.Caller{EUID: 12, FSGID: 20}, true, true},
		{ipc.Caller{EUID: 12, FSGID: 21}, true, true},
		{ipc.Caller{EUID: 12, Groups: []uint32{5, 21}}, true, true},
		{ipc.Caller{EUID: 12, FSGID: 5}, false, true},
		{ipc.Caller{EUID: 12, FSGID: 5, Owner: true}, true, true},
		{ipc.Caller{EUID: 0, FSGID: 5}, false, true},
	} {
		if read := p.Allows(&c.who, ipc.MayRead) == 0; read != c.read {
			t.Errorf("%+v: read %v", c.who, read)
		}
		if write := p.Allows(&c.who, ipc.MayWrite) == 0; write != c.write {
			t.Errorf("%+v: write %v", c.who, write)
		}
	}
	for uid, may := range map[uint32]bool{10: true, 11: true, 12: false} {
		if errno := p.MayControl(&ipc.Caller{EUID: uid}); (errno == 0) != may {
			t.Errorf("user %d: %v", uid, errno)
		}
	}
	in := p.Layout()
	in.Mode, in.UID = 0o7777, 99
	p.Mode |= 0o1000
	if errno := p.Update(&ipc.Caller{Now: 5}, &in); errno != 0 || p.Mode != 0o1777 || p.UID != 99 || p.Changed != 5 {
		t.Errorf("updated: %v, %+v", errno, p)
	}
	in.GID = ^uint32(0)
	if errno := p.Update(root, &in); errno != unix.EINVAL {
		t.Errorf("no group: %v", errno)
	}
}

func TestCopiesOfTablesAreIndependent(t *testing.T) {
	type world struct{ Table *ipc.Table[*object] }
	w := world{&ipc.Table[*object]{}}
	add(t, w.Table, 5)
	n := deepcopy.Copy(deepcopy.New(), w)
	add(t, n.Table, 6)
	o, _ := n.Table.Find(0)
	n.Table.Delete(o)
	if w.Table.Len() != 1 || n.Table.Len() != 1 {
		t.Errorf("%d and %d objects", w.Table.Len(), n.Table.Len())
	}
}
