package stream

import "github.com/heddle-dmt/heddle/analyses/races"

const (
	pageSize  = 4096
	pageShift = 12
)

// ignoresAccesses reports whether the thread's accesses belong to an operation or an allocator.
func (x *Run) ignoresAccesses(t *Thread) bool {
	return t.operationDepth > 0 || t.allocatorDepth > 0 && x.options.Order == races.HappensBefore
}

// noteDepth says whether the thread's accesses count, after a change of its depths.
func (x *Run) noteDepth(t *Thread) { t.runner.Ignore(x.ignoresAccesses(t)) }

// forgetRange makes a range of a process's addresses memory without a past.
func (x *Run) forgetRange(p *process, from, to uint64) {
	p.eachPage(from, to, func(at, _, size uint64) { x.follower.Forget(at, at+size) })
}

// eachPage calls f for the parts of a range of addresses that are known to lead
// somewhere, in order, one for each page: where that is, the address, and the
// size.
func (p *process) eachPage(from, to uint64, f func(at, addr, size uint64)) {
	if from >= to {
		return
	}
	for _, number := range p.space.Numbers(from>>pageShift, (to-1)>>pageShift) {
		page, _ := p.space.PageAt(number)
		start := max(from, number<<pageShift)
		end := min(to-1, number<<pageShift|(pageSize-1))
		f(page<<pageShift+start%pageSize, start, end-start+1)
	}
}
