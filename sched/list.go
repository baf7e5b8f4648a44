package sched

// A slot is a thread's index in Cluster.threads, and none stands for no thread.
// Slots of exited threads are used again.
type slot int32

const none slot = -1

// A list is a doubly linked list of slots. A slot is in a list at most once.
type list struct {
	first, last slot
	links       []link
}

type link struct {
	before, after slot
	in            bool
}

func newList() list { return list{first: none, last: none} }

func (l *list) empty() bool { return l.first == none }

func (l *list) has(s slot) bool { return int(s) < len(l.links) && l.links[s].in }

// append puts s, which is not in the list, at its end.
func (l *list) append(s slot) {
	for int(s) >= len(l.links) {
		l.links = append(l.links, link{})
	}
	l.links[s] = link{before: l.last, after: none, in: true}
	if l.last == none {
		l.first = s
	} else {
		l.links[l.last].after = s
	}
	l.last = s
}

// insert puts s, which is not in the list, before another slot that is.
func (l *list) insert(s, next slot) {
	for int(s) >= len(l.links) {
		l.links = append(l.links, link{})
	}
	before := l.links[next].before
	l.links[s] = link{before: before, after: next, in: true}
	l.links[next].before = s
	if before == none {
		l.first = s
	} else {
		l.links[before].after = s
	}
}

// remove takes s out of the list if it is in it.
func (l *list) remove(s slot) {
	if !l.has(s) {
		return
	}
	at := l.links[s]
	if at.before == none {
		l.first = at.after
	} else {
		l.links[at.before].after = at.after
	}
	if at.after == none {
		l.last = at.before
	} else {
		l.links[at.after].before = at.before
	}
	l.links[s] = link{}
}

// after returns what follows s in the list, or none.
func (l *list) after(s slot) slot { return l.links[s].after }
