package stream

// StackOf is the live thread of a process whose stack contains an address; nil without one.
func (x *Run) StackOf(process int32, addr uint64) *Thread {
	for _, t := range x.threads {
		low, high := t.runner.Bounds()
		if t.Process == process && !t.over && addr >= low-min(low, pageSize) && addr < high+pageSize && high > low {
			return t
		}
	}
	return nil
}
