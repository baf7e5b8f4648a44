package races

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
	for i, list := range p.more {
		q.more[i] = nil
		for _, part := range list {
			part.reads = append([]mark(nil), part.reads...)
			q.more[i] = append(q.more[i], part)
		}
	}
	return &q
}

// keep forgets all other marks.
func (p *page) keep(wanted func(*mark) bool) {
	for i := range p.states {
		p.states[i].keep(wanted)
		for j := range p.more[i] {
			p.more[i][j].keep(wanted)
		}
	}
}

func (s *state) keep(wanted func(*mark) bool) {
	if !wanted(&s.write) {
		s.write = mark{}
	}
	if !wanted(&s.read) {
		s.read = mark{}
	}
}

// keep is the same with further readers, one of which takes the place of the
// first.
func (q *part) keep(wanted func(*mark) bool) {
	q.state.keep(wanted)
	all := q.reads
	q.reads = q.reads[:0]
	for i := range all {
		if !wanted(&all[i]) {
			continue
		}
		if m := all[i]; !q.read.used() {
			q.read = m
		} else {
			q.reads = append(q.reads, m)
		}
	}
}
