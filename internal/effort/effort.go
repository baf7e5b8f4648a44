// Package effort bounds long computations in units that do not depend on the host: Bound ends a computation after a
// number of them, or when a function that it asks now and then says so.
package effort

// Meter counts the units of a computation. A nil Meter has no bound. It is for one goroutine.
type Meter struct {
	left, untilAsked uint64
	bounded          bool
	ask              func() error
	over             error
}

// unitsPerQuestion is the number of units between two calls of the function that may end a computation.
const unitsPerQuestion = 1 << 14

// ended ends a computation; Bound recovers it.
type ended struct {
	meter *Meter
	err   error
}

// Bound has f compute, and returns nil if f returned. After limit units (0: no bound) f is ended and Bound returns
// over; if ask, which may be nil, returns an error, Bound ends f and returns that error.
func Bound(limit uint64, over error, ask func() error, f func(m *Meter)) (err error) {
	m := &Meter{left: limit, bounded: limit > 0, untilAsked: unitsPerQuestion, ask: ask, over: over}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ended:
			if e.meter != m {
				panic(e)
			}
			err = e.err
		default:
			panic(e)
		}
	}()
	f(m)
	return nil
}

// Add counts n units. It does not return if the computation has to end.
func (m *Meter) Add(n int) {
	if m == nil {
		return
	}
	units := uint64(n)
	if m.bounded {
		if units >= m.left {
			panic(ended{m, m.over})
		}
		m.left -= units
	}
	if units < m.untilAsked {
		m.untilAsked -= units
		return
	}
	m.untilAsked = unitsPerQuestion
	if m.ask != nil {
		if err := m.ask(); err != nil {
			panic(ended{m, err})
		}
	}
}
