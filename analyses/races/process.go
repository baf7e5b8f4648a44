package races

import (
	"math/bits"
	"slices"
)

// Begin tells to which process a thread belongs, before its first access.
// Threads of which nothing is said are of process 0.
func (d *Detector) Begin(n, process int) { d.threadAt(n).process = process }

// End tells that a process is over. What its threads did does not race with what
// other processes do from now on: memory that both had may be a copy.
func (d *Detector) End(process int) { d.over[process] = true }

// Copy tells that the page with number to is now a copy of the page from, which
// the process has there instead: what its threads did to from moves. A page has
// 4096 bytes, and its number is that of its first byte divided by 4096.
func (d *Detector) Copy(to, from uint64, process int) {
	own := func(m *mark) bool { return m.used() && d.threads[m.thread()].process == process }
	d.shadow.drop(to)
	p := d.shadow.pages[from]
	if p == nil {
		return
	}
	q := p.copy()
	q.keep(own)
	d.shadow.pages[to] = q
	p.keep(func(m *mark) bool { return m.used() && !own(m) })
}

// apart tells whether two accesses by different threads are none of the same
// memory for certain.
func (d *Detector) apart(before, now *mark) bool {
	process := d.threads[before.thread()].process
	return process != d.threads[now.thread()].process && d.over[process]
}

func (p *page) copy() *page {
	q := *p
	for i, m := range p.more {
		if m == nil {
			continue
		}
		q.more[i] = &parts{states: slices.Clone(m.states)}
		if m.reads != nil {
			q.more[i].readers()
			for j := range m.reads {
				q.more[i].reads[j] = slices.Clone(m.reads[j])
			}
		}
	}
	return &q
}

// keep forgets all other marks.
func (p *page) keep(wanted func(*mark) bool) {
	for word := range p.states {
		for n := range bits.OnesCount8(p.starts[word]) {
			s := p.state(uint64(word), n)
			s.keep(wanted, p.reads(uint64(word), n))
		}
	}
}

// keep is the same for one part, whose further reads are in a list, or nil.
func (s *state) keep(wanted func(*mark) bool, reads *[]mark) {
	if !wanted(&s.write) {
		s.write = mark{}
	}
	if !wanted(&s.read) {
		s.read = mark{}
	}
	if reads == nil {
		return
	}
	*reads = slices.DeleteFunc(*reads, func(m mark) bool { return !wanted(&m) })
	if n := len(*reads); n > 0 && !s.read.used() {
		s.read = (*reads)[n-1]
		*reads = (*reads)[:n-1]
	}
}
