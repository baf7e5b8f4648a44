package partialorder

// joinClocks sets a to the least vector clock that is not less than a and b.
func joinClocks(a, b []uint32) []uint32 {
	if len(b) > len(a) {
		a = append(a, make([]uint32, len(b)-len(a))...)
	}
	for i, n := range b {
		a[i] = max(a[i], n)
	}
	return a
}

// advanceComponent raises one thread's component of a clock to at least n.
func advanceComponent(a []uint32, thread int, n uint32) []uint32 {
	if thread >= len(a) {
		a = append(a, make([]uint32, thread+1-len(a))...)
	}
	a[thread] = max(a[thread], n)
	return a
}

func clockComponent(a []uint32, thread int) uint32 {
	if thread >= len(a) {
		return 0
	}
	return a[thread]
}
