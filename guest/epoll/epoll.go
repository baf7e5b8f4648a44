// Package epoll is the guest's epoll(7): instances, their entries and the list
// of entries that may be ready. It has no notion of descriptor tables and does
// not block: Take returns the entries that are ready, and the kernel waits.
//
// Invariants:
//
//  1. An entry belongs to an open description and a descriptor number. It ends
//     with EPOLL_CTL_DEL, with the description's last reference or with the
//     instance, whichever comes first.
//  2. The ready list is in the order in which entries became ready; a
//     level-triggered entry that was taken goes to its end.
//  3. Instances that watch each other form no cycle and no chain of more than
//     five.
package epoll

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Event is the set of events that a program requests, or that are reported, for one entry.
type Event struct {
	Events uint32
	Data   uint64
}

const (
	// always are events that are reported whether asked for or not.
	always = unix.EPOLLERR | unix.EPOLLHUP
	// private are the bits of Events that ask for no event.
	private = unix.EPOLLWAKEUP | unix.EPOLLONESHOT | unix.EPOLLET | unix.EPOLLEXCLUSIVE
	inOut   = unix.EPOLLIN | unix.EPOLLOUT
	// exclusiveOK are the bits that can come with EPOLLEXCLUSIVE.
	exclusiveOK = inOut | always | unix.EPOLLWAKEUP | unix.EPOLLET | unix.EPOLLEXCLUSIVE
)

// Instance is the file of epoll_create1(2).
type Instance struct {
	memory  *kmem.Account
	entries map[key]*entry
	ready   []*entry    // entries that may be ready, in order
	takers  *wait.Queue // threads in epoll_wait
	waiters *wait.Queue // threads that poll the instance
	above   []*entry    // of other instances, that watch this one
}

type key struct {
	file *vfs.File
	fd   int32
}

// entry is one registration. Its waker stands in the wait queue of the file.
type entry struct {
	key
	instance *Instance
	event    Event
	queue    *wait.Queue
	waker    wait.Waker
	listed   bool // in the ready list
}

// exclusive is the waker of an entry with EPOLLEXCLUSIVE.
type exclusive struct{ *entry }

// New makes an instance whose entries are charged to an account, which may be
// nil.
func New(memory *kmem.Account) *Instance {
	return &Instance{memory: memory, entries: map[key]*entry{}, takers: &wait.Queue{}, waiters: &wait.Queue{}}
}

// Add registers an open description under a descriptor number, EPOLL_CTL_ADD.
// EEXIST: that pair is registered; EPERM: the file cannot be polled; EINVAL:
// EPOLLEXCLUSIVE does not go with the other bits or the file; ELOOP: instances
// would watch each other in a circle, or too deep; ENOSPC: the kernel's memory
// is used up.
func (i *Instance) Add(f *vfs.File, fd int32, ev Event) unix.Errno {
	if _, ok := f.Impl.(vfs.Poller); !ok {
		return unix.EPERM
	}
	below, nested := f.Impl.(*Instance)
	if ev.Events&unix.EPOLLEXCLUSIVE != 0 && (nested || ev.Events&^uint32(exclusiveOK) != 0) {
		return unix.EINVAL
	}
	if nested && i.wouldLoop(below) {
		return unix.ELOOP
	}
	k := key{f, fd}
	if i.entries[k] != nil {
		return unix.EEXIST
	}
	if !i.memory.Charge(kmem.Watch) {
		return unix.ENOSPC
	}
	ev.Events |= always
	e := &entry{key: k, instance: i, event: ev, queue: f.Waiters()}
	if nested {
		below.above = append(below.above, e)
		if below.tooManyPaths(map[*Instance]bool{}) {
			below.forget(e)
			i.memory.Release(kmem.Watch)
			return unix.EINVAL
		}
	}
	i.entries[k] = e
	f.Watch(e)
	e.enqueue()
	i.list(e)
	return 0
}

// enqueue puts the entry's waker into the file's wait queue: as in Linux, an
// exclusive one after the present ones, any other before them.
func (e *entry) enqueue() {
	if e.event.Events&unix.EPOLLEXCLUSIVE != 0 {
		e.waker = &exclusive{e}
		e.queue.Add(e.waker)
		return
	}
	e.waker = e
	e.queue.AddFirst(e.waker)
}

// Modify changes the events of an entry, EPOLL_CTL_MOD. ENOENT: there is no
// such entry; EINVAL: EPOLLEXCLUSIVE is or was asked for.
func (i *Instance) Modify(f *vfs.File, fd int32, ev Event) unix.Errno {
	if _, ok := f.Impl.(vfs.Poller); !ok {
		return unix.EPERM
	}
	e := i.entries[key{f, fd}]
	switch {
	case ev.Events&unix.EPOLLEXCLUSIVE != 0:
		return unix.EINVAL
	case e == nil:
		return unix.ENOENT
	case e.event.Events&unix.EPOLLEXCLUSIVE != 0:
		return unix.EINVAL
	}
	ev.Events |= always
	e.event = ev
	i.list(e)
	return 0
}

// Delete ends an entry, EPOLL_CTL_DEL. ENOENT: there is no such entry.
func (i *Instance) Delete(f *vfs.File, fd int32) unix.Errno {
	if _, ok := f.Impl.(vfs.Poller); !ok {
		return unix.EPERM
	}
	e := i.entries[key{f, fd}]
	if e == nil {
		return unix.ENOENT
	}
	f.Unwatch(e)
	i.remove(e)
	return 0
}

// list puts an entry that is ready into the ready list.
func (i *Instance) list(e *entry) {
	if e.currentEvents() == 0 || e.listed {
		return
	}
	e.listed = true
	i.ready = append(i.ready, e)
	i.wake()
}

// wake wakes all threads that wait for the instance.
func (i *Instance) wake() {
	i.takers.Wake(unix.EPOLLIN)
	i.waiters.Wake(unix.EPOLLIN)
}

func (i *Instance) remove(e *entry) {
	delete(i.entries, e.key)
	i.memory.Release(kmem.Watch)
	e.queue.Remove(e.waker)
	i.unlist(e)
	if below, ok := e.file.Impl.(*Instance); ok {
		below.forget(e)
	}
}

func (i *Instance) unlist(e *entry) {
	if e.listed {
		at := slices.Index(i.ready, e)
		i.ready = slices.Delete(i.ready, at, at+1)
		e.listed = false
	}
}

func (i *Instance) forget(e *entry) {
	if at := slices.Index(i.above, e); at >= 0 {
		i.above = slices.Delete(i.above, at, at+1)
	}
}

// currentEvents are the requested events that hold.
func (e *entry) currentEvents() uint32 { return e.file.Ready() & e.event.Events }

// Wake implements wait.Waker.
func (e *entry) Wake(events uint32) { e.wake(events) }

// WakeOne implements wait.Exclusive.
func (x *exclusive) WakeOne(events uint32) bool {
	waiting := !x.instance.takers.Empty()
	if !x.wake(events) || !waiting {
		return false
	}
	switch events & inOut {
	case unix.EPOLLIN, unix.EPOLLOUT:
		return x.event.Events&events&inOut != 0
	case 0:
		return true
	}
	return events == wait.AnyEvent
}

// wake puts the entry into the ready list and wakes the threads that wait for the
// instance. It returns whether the events concern the entry.
func (e *entry) wake(events uint32) bool {
	if asked := e.event.Events; asked&^uint32(private) == 0 || events&asked == 0 {
		return false
	}
	if !e.listed {
		e.listed = true
		e.instance.ready = append(e.instance.ready, e)
	}
	e.instance.wake()
	return true
}

// FileClosed implements vfs.Watcher.
func (e *entry) FileClosed(*vfs.File) { e.instance.remove(e) }

// Take passes up to limit events to put, in the order in which they became
// ready. If put refuses one, that entry stays and Take ends.
func (i *Instance) Take(limit int, put func(Event) bool) int {
	work := i.ready
	i.ready = nil
	n := 0
	for n < limit && len(work) > 0 {
		e := work[0]
		events := e.currentEvents()
		if events != 0 {
			if !put(Event{events, e.event.Data}) {
				break
			}
			n++
		}
		work = work[1:]
		e.listed = false
		switch {
		case events == 0:
		case e.event.Events&unix.EPOLLONESHOT != 0:
			e.event.Events &= private
		case e.event.Events&unix.EPOLLET == 0:
			e.listed = true
			i.ready = append(i.ready, e)
		}
	}
	i.ready = append(work[:len(work):len(work)], i.ready...)
	return n
}

// Read implements vfs.FileImpl; an instance cannot be read.
func (i *Instance) Read(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EINVAL }

// Write implements vfs.FileImpl; an instance cannot be written to.
func (i *Instance) Write(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EINVAL }

// Ready implements vfs.Poller: an instance is readable when one of its entries
// is ready. Entries at the head of the list that are ready no more leave it.
func (i *Instance) Ready() uint32 {
	for len(i.ready) > 0 {
		if i.ready[0].currentEvents() != 0 {
			return unix.EPOLLIN | unix.EPOLLRDNORM
		}
		i.ready[0].listed = false
		i.ready = i.ready[1:]
	}
	return 0
}

// Takers is woken when Take may have something to give.
func (i *Instance) Takers() *wait.Queue { return i.takers }

// Waiters implements vfs.Poller.
func (i *Instance) Waiters() *wait.Queue { return i.waiters }

// Close implements vfs.Closer: all entries end.
func (i *Instance) Close() {
	for _, e := range i.ready {
		e.listed = false
	}
	i.ready = nil
	for _, e := range i.entries { // the order does not matter
		e.file.Unwatch(e)
		i.remove(e)
	}
}

// Entry is one registration, as /proc/PID/fdinfo shows it.
type Entry struct {
	FD int32
	Event
}

// Entries lists the registrations by descriptor number, and the ones of one number
// by data.
func (i *Instance) Entries() []Entry {
	list := make([]Entry, 0, len(i.entries))
	for e := range maps.Values(i.entries) {
		list = append(list, Entry{e.fd, e.event})
	}
	slices.SortFunc(list, func(a, b Entry) int {
		switch {
		case a.FD != b.FD:
			return int(a.FD) - int(b.FD)
		case a.Data < b.Data:
			return -1
		case a.Data > b.Data:
			return 1
		}
		return int(int64(a.Events) - int64(b.Events))
	})
	return list
}
