package races

import (
	"math/bits"
	"slices"
)

// SetProcess sets the process of a thread, before its first access. Threads without one are of
// process 0.
func (d *Detector) SetProcess(n, process int) { d.threadAt(n).process = process }

// EndProcess ends a process. The accesses of its threads do not race with later ones of other
// processes: memory that both had may be a copy.
func (d *Detector) EndProcess(process int) { d.endedProcesses[process] = true }

// CopyPage makes the page with number to a copy of the page from, which the process has there
// instead: the accesses of its threads to from move. A page has 4096 bytes, and its number is that
// of its first byte divided by 4096.
func (d *Detector) CopyPage(to, from uint64, process int) {
	own := func(m *mark) bool { return m.isUsed() && d.threads[m.threadNumber()].process == process }
	d.shadow.dropPage(to)
	p := d.shadow.pages[from]
	if p == nil {
		return
	}
	q := p.copyPage()
	q.keepMarks(own)
	d.shadow.pages[to] = q
	p.keepMarks(func(m *mark) bool { return m.isUsed() && !own(m) })
}

// inEndedProcess reports whether two accesses are certainly not to the same memory, as the process
// of the first has ended.
func (d *Detector) inEndedProcess(before, now *mark) bool {
	process := d.threads[before.threadNumber()].process
	return process != d.threads[now.threadNumber()].process && d.endedProcesses[process]
}

func (p *page) copyPage() *page {
	q := *p
	for i, m := range p.more {
		if m == nil {
			continue
		}
		q.more[i] = &parts{states: slices.Clone(m.states)}
		if m.reads != nil {
			q.more[i].allocateReads()
			for j := range m.reads {
				q.more[i].reads[j] = slices.Clone(m.reads[j])
			}
		}
	}
	return &q
}

// keepMarks forgets all other marks.
func (p *page) keepMarks(wanted func(*mark) bool) {
	for word := range p.states {
		for n := range bits.OnesCount8(p.starts[word]) {
			s := p.partState(uint64(word), n)
			s.keepMarks(wanted, p.furtherReads(uint64(word), n))
		}
	}
}

// keepMarks is the same for one part, whose further reads are in a list, or nil.
func (s *state) keepMarks(wanted func(*mark) bool, reads *[]mark) {
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
	if n := len(*reads); n > 0 && !s.read.isUsed() {
		s.read = (*reads)[n-1]
		*reads = (*reads)[:n-1]
	}
}
