package effort_test

import (
	"errors"
	"testing"

	"github.com/heddle-dmt/heddle/internal/effort"
)

func TestBound(t *testing.T) {
	over, stopped := errors.New("over"), errors.New("stopped")
	count := 0
	count3000 := func(m *effort.Meter) {
		for count = 0; count < 3000; count++ {
			m.Add(10)
		}
	}
	never := func() error { return nil }
	for _, x := range []struct {
		name  string
		limit uint64
		ask   func() error
		want  error
		count int
	}{
		{"no bound", 0, nil, nil, 3000},
		{"enough", 30001, never, nil, 3000},
		{"one unit too few", 30000, never, over, 2999},
		{"first unit", 1, never, over, 0},
		{"asked", 0, func() error { return stopped }, stopped, (1<<14 - 1) / 10},
		{"over before asked", 100, func() error { return stopped }, over, 9},
	} {
		if err := effort.Bound(x.limit, over, x.ask, count3000); err != x.want || count != x.count {
			t.Errorf("%s: %v after %d, want %v after %d", x.name, err, count, x.want, x.count)
		}
	}
	(*effort.Meter)(nil).Add(1 << 30)
}

// Other panics, and those of an outer computation, are no end of the inner one.
func TestBoundPassesPanicsOn(t *testing.T) {
	outer, inner := errors.New("outer"), errors.New("inner")
	err := effort.Bound(5, outer, nil, func(m *effort.Meter) {
		err := effort.Bound(100, inner, nil, func(*effort.Meter) { m.Add(5) })
		t.Errorf("the inner computation ends with %v", err)
	})
	if err != outer {
		t.Error(err)
	}
	defer func() {
		if recover() != "bug" {
			t.Error("the panic is lost")
		}
	}()
	_ = effort.Bound(5, outer, nil, func(*effort.Meter) { panic("bug") })
}
