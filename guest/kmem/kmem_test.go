package kmem

import "testing"

func TestAccount(t *testing.T) {
	a := New(1 << 30)
	if a.limit != 128<<20 || New(1<<20).limit != least {
		t.Errorf("limits are %d and %d", a.limit, New(1<<20).limit)
	}
	if !a.Charge(a.limit-10) || a.Charge(11) || !a.MayGrow() || !a.Charge(10) || a.MayGrow() || a.Charge(1) || !a.Charge(0) {
		t.Errorf("%d bytes are charged", a.Used())
	}
	a.Force(5)
	a.Release(6)
	if a.Used() != a.limit-1 || a.Charge(2) || a.Charge(^uint64(0)) || !a.Charge(1) {
		t.Errorf("%d bytes are charged", a.Used())
	}
	defer func() {
		if recover() == nil {
			t.Error("more was released than charged")
		}
	}()
	a.Release(a.limit + 1)
}

func TestNoAccount(t *testing.T) {
	var a *Account
	a.Force(1)
	a.Release(2)
	if !a.Charge(1<<60) || !a.MayGrow() || a.Used() != 0 {
		t.Error("no account counts something")
	}
}
