package partialorder

import "slices"

// Vector clocks do not change: steps, threads and entities share them.

// joinClocks returns the least vector clock that is not less than a and b.
func joinClocks(a, b []uint32) []uint32 {
	for i, n := range b {
		if i >= len(a) || a[i] < n {
			return join(a, b)
		}
	}
	return a
}

func join(a, b []uint32) []uint32 {
	if len(a) < len(b) {
		a, b = b, a
	}
	a = slices.Clone(a)
	for i, n := range b {
		a[i] = max(a[i], n)
	}
	return a
}

// advanceComponent returns a clock with one thread's component raised to at least n.
func advanceComponent(a []uint32, thread int, n uint32) []uint32 {
	c := make([]uint32, max(len(a), thread+1))
	copy(c, a)
	c[thread] = max(c[thread], n)
	return c
}

func clockComponent(a []uint32, thread int) uint32 {
	if thread >= len(a) {
		return 0
	}
	return a[thread]
}
