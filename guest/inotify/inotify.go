// Package inotify is inotify(7): instances that queue the events of files and
// folders. An Instance is the file of inotify_init1(2); its watches are
// notified by the file system (vfs.Watch).
//
// Invariants:
//
//  1. An instance watches an inode at most once.
//  2. Two equal events in a row are one.
//  3. A watch that ended has queued IN_IGNORED as its last event.
package inotify

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

const (
	// control are the bits of a mask that are no events.
	control = unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK | unix.IN_MASK_ADD | unix.IN_MASK_CREATE |
		unix.IN_ISDIR | unix.IN_ONESHOT
	// known are the bits that a mask may have.
	known = unix.IN_ALL_EVENTS | control | unix.IN_UNMOUNT | unix.IN_Q_OVERFLOW | unix.IN_IGNORED
	// kept are the bits that a watch keeps.
	kept = unix.IN_ALL_EVENTS | unix.IN_EXCL_UNLINK | unix.IN_ONESHOT
)

// Sizes of an event: its head is struct inotify_event, and its name is padded to a
// multiple of that.
const (
	headSize  = 16
	eventCost = 64 // charged for an event besides its name
)

// System counts the instances and watches of users.
type System struct {
	instances, watches map[uint32]int
	memory             *kmem.Account
}

// New makes a System without instances.
func New(memory *kmem.Account) *System {
	return &System{instances: map[uint32]int{}, watches: map[uint32]int{}, memory: memory}
}

// Instance is the object of inotify_init(2).
type Instance struct {
	system  *System
	uid     uint32
	list    []*watch // in the order in which they were made
	lastWD  int32
	queue   []event
	waiters *wait.Queue
}

// watch is an entry of an instance.
type watch struct {
	instance *Instance
	inode    *vfs.Inode
	wd       int32
	mask     uint32
}

type event struct {
	wd           int32
	mask, cookie uint32
	name         string
}

// NewInstance makes an instance of a user. EMFILE: the user has too many.
func (y *System) NewInstance(uid uint32) (*Instance, unix.Errno) {
	if y.instances[uid] >= linux.InotifyMaxUserInstances {
		return nil, unix.EMFILE
	}
	y.instances[uid]++
	return &Instance{system: y, uid: uid, waiters: &wait.Queue{}}, 0
}

// CheckMask checks the mask of a watch. EINVAL: it has no event, or bits that are
// unknown or contradict each other.
func CheckMask(mask uint32) unix.Errno {
	const exclusive = unix.IN_MASK_ADD | unix.IN_MASK_CREATE
	if mask&^known != 0 || mask&known == 0 || mask&exclusive == exclusive {
		return unix.EINVAL
	}
	return 0
}

// Add watches an inode, or changes the watch of it, and returns its number.
// EEXIST: there is one, and IN_MASK_CREATE forbids that. ENOSPC: there are too many.
func (x *Instance) Add(i *vfs.Inode, mask uint32) (int32, unix.Errno) {
	if w := x.watchOf(i); w != nil {
		switch {
		case mask&unix.IN_MASK_CREATE != 0:
			return 0, unix.EEXIST
		case mask&unix.IN_MASK_ADD != 0:
			w.mask |= mask & kept
		default:
			w.mask = mask & kept
		}
		return w.wd, 0
	}
	y := x.system
	if y.watches[x.uid] >= linux.InotifyMaxUserWatches || !y.memory.Charge(kmem.Watch) {
		return 0, unix.ENOSPC
	}
	y.watches[x.uid]++
	x.lastWD++
	w := &watch{x, i, x.lastWD, mask & kept}
	x.list = append(x.list, w)
	i.AddWatch(w)
	return w.wd, 0
}

// watchOf finds the watch of an inode, which a made-up object has another of at
// each look.
func (x *Instance) watchOf(i *vfs.Inode) (found *watch) {
	i.EachWatch(func(o vfs.Watch) bool {
		if w, ok := o.(*watch); ok && w.instance == x {
			found = w
		}
		return found == nil
	})
	return found
}

// Remove ends a watch. EINVAL: there is no watch of that number.
func (x *Instance) Remove(wd int32) unix.Errno {
	at := slices.IndexFunc(x.list, func(w *watch) bool { return w.wd == wd })
	if at < 0 {
		return unix.EINVAL
	}
	w := x.list[at]
	w.inode.RemoveWatch(w)
	w.Gone()
	return 0
}

// Gone implements vfs.Watch.
func (w *watch) Gone() {
	x := w.instance
	if at := slices.Index(x.list, w); at >= 0 {
		x.list = slices.Delete(x.list, at, at+1)
		x.forget()
	}
	x.put(event{wd: w.wd, mask: unix.IN_IGNORED})
}

// forget gives back the memory of a watch.
func (x *Instance) forget() {
	x.system.memory.Release(kmem.Watch)
	if x.system.watches[x.uid]--; x.system.watches[x.uid] == 0 {
		delete(x.system.watches, x.uid)
	}
}

// Event implements vfs.Watch.
func (w *watch) Event(e vfs.Event) {
	if e.Mask&w.mask&unix.IN_ALL_EVENTS == 0 || e.Name != "" && e.Unlinked && w.mask&unix.IN_EXCL_UNLINK != 0 {
		return
	}
	w.instance.put(event{w.wd, e.Mask, e.Cookie, e.Name})
	if w.mask&unix.IN_ONESHOT != 0 {
		w.inode.RemoveWatch(w)
		w.Gone()
	}
}

// put queues an event, unless it is the same as the last one. When the queue is
// full, or no memory is left, the last event says so.
func (x *Instance) put(e event) {
	if n := len(x.queue); n > 0 {
		last := &x.queue[n-1]
		if last.mask == e.mask && last.wd == e.wd && last.name == e.name && e.mask != unix.IN_IGNORED {
			return
		}
		if last.mask == unix.IN_Q_OVERFLOW {
			return
		}
	}
	if len(x.queue) >= linux.InotifyMaxQueuedEvents || !x.system.memory.Charge(e.cost()) {
		e = event{wd: -1, mask: unix.IN_Q_OVERFLOW}
		x.system.memory.Force(e.cost())
	}
	x.queue = append(x.queue, e)
	x.waiters.Wake(unix.EPOLLIN | unix.EPOLLRDNORM)
}

func (e *event) cost() uint64 { return eventCost + uint64(len(e.name)) }

// size is the length of the event as it is read.
func (e *event) size() int {
	if e.name == "" {
		return headSize
	}
	return headSize + (len(e.name)+1+headSize-1)/headSize*headSize
}

// NextSize is the length of the next event as it is read, 0 if there is no event.
func (x *Instance) NextSize() int {
	if len(x.queue) == 0 {
		return 0
	}
	return x.queue[0].size()
}

// Read implements vfs.FileImpl: it takes as many events as p has room for. EINVAL:
// it has no room for the first; EAGAIN: there is no event.
func (x *Instance) Read(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	n := 0
	for len(x.queue) > 0 {
		e := &x.queue[0]
		size := e.size()
		if size > len(p)-n {
			if n == 0 {
				return 0, unix.EINVAL
			}
			break
		}
		b := p[n : n+size]
		clear(b)
		binary.LittleEndian.PutUint32(b[0:], uint32(e.wd))
		binary.LittleEndian.PutUint32(b[4:], e.mask)
		binary.LittleEndian.PutUint32(b[8:], e.cookie)
		binary.LittleEndian.PutUint32(b[12:], uint32(size-headSize))
		copy(b[headSize:], e.name)
		n += size
		x.system.memory.Release(e.cost())
		x.queue = x.queue[1:]
	}
	if n == 0 {
		return 0, unix.EAGAIN
	}
	return n, 0
}

// Write implements vfs.FileImpl; there is nothing to write.
func (x *Instance) Write(*vfs.Ctx, []byte, int64) (int, unix.Errno) { return 0, unix.EBADF }

// Ready implements vfs.Poller.
func (x *Instance) Ready() uint32 {
	if len(x.queue) > 0 {
		return unix.EPOLLIN | unix.EPOLLRDNORM
	}
	return 0
}

// Waiters implements vfs.Poller.
func (x *Instance) Waiters() *wait.Queue { return x.waiters }

// Ioctl implements vfs.Ioctler: FIONREAD answers the number of bytes that wait.
func (x *Instance) Ioctl(cmd uint32, _ int64) ([]byte, unix.Errno) {
	if cmd != unix.TIOCINQ {
		return nil, unix.ENOTTY
	}
	n := 0
	for i := range x.queue {
		n += x.queue[i].size()
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(n)), 0
}

// Close implements vfs.Closer.
func (x *Instance) Close() {
	for _, w := range x.list {
		w.inode.RemoveWatch(w)
		x.forget()
	}
	for i := range x.queue {
		x.system.memory.Release(x.queue[i].cost())
	}
	x.list, x.queue = nil, nil
	if x.system.instances[x.uid]--; x.system.instances[x.uid] == 0 {
		delete(x.system.instances, x.uid)
	}
}
