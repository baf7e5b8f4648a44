package sched

// A slot is a thread's index in Cluster.threads, and none stands for no thread.
// Slots of exited threads are used again.
type slot int32

const noSlot slot = -1

// A list is a doubly linked list of slots. A slot is in a list at most once.
type slotList struct {
	firstSlot, lastSlot slot
	links               []link
}

type link struct {
	before, after slot
	in            bool
}

func newSlotList() slotList { return slotList{firstSlot: noSlot, lastSlot: noSlot} }

func (l *slotList) isEmpty() bool { return l.firstSlot == noSlot }

func (l *slotList) contains(s slot) bool { return int(s) < len(l.links) && l.links[s].in }

// appendSlot puts s, which is not in the list, at its end.
func (l *slotList) appendSlot(s slot) {
	for int(s) >= len(l.links) {
		l.links = append(l.links, link{})
	}
	l.links[s] = link{before: l.lastSlot, after: noSlot, in: true}
	if l.lastSlot == noSlot {
		l.firstSlot = s
	} else {
		l.links[l.lastSlot].after = s
	}
	l.lastSlot = s
}

// insertBefore puts s, which is not in the list, before another slot that is.
func (l *slotList) insertBefore(s, next slot) {
	for int(s) >= len(l.links) {
		l.links = append(l.links, link{})
	}
	before := l.links[next].before
	l.links[s] = link{before: before, after: next, in: true}
	l.links[next].before = s
	if before == noSlot {
		l.firstSlot = s
	} else {
		l.links[before].after = s
	}
}

// removeSlot takes s out of the list if it is in it.
func (l *slotList) removeSlot(s slot) {
	if !l.contains(s) {
		return
	}
	at := l.links[s]
	if at.before == noSlot {
		l.firstSlot = at.after
	} else {
		l.links[at.before].after = at.after
	}
	if at.after == noSlot {
		l.lastSlot = at.before
	} else {
		l.links[at.after].before = at.before
	}
	l.links[s] = link{}
}

// successorOf returns the slot after s in the list, or none.
func (l *slotList) successorOf(s slot) slot { return l.links[s].after }
