package vfs

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Watch is an interest in the events of an inode and, if that is a folder, of the
// names in it: an entry of an inotify instance. Events are those of
// inotify(7), unix.IN_*.
type Watch interface {
	// Event reports an event.
	Event(e Event)
	// Gone reports that the inode has ended: no event follows.
	Gone()
}

// Event is an event that has happened.
type Event struct {
	Mask     uint32
	Cookie   uint32 // the same for both halves of a rename
	Name     string // in a folder that is watched; "" means the inode itself
	Unlinked bool   // the file does not have this name any more
}

// nodeKey identifies a generated object, which has an inode of its own at each lookup.
type nodeKey struct{ dev, ino uint64 }

// watches returns the list of an inode's watches.
func (i *Inode) watches() []Watch {
	if i.node != nil {
		return i.fs.nodeWatches[nodeKey{i.super.Dev, i.ino}]
	}
	return i.watchList
}

func (i *Inode) setWatches(list []Watch) {
	switch key := (nodeKey{i.super.Dev, i.ino}); {
	case i.node == nil:
		i.watchList = list
	case len(list) == 0:
		delete(i.fs.nodeWatches, key)
	default:
		i.fs.nodeWatches[key] = list
	}
}

// IsAlone reports whether calls that move data by the file affect nothing but its content, times and
// offset: it is a regular file with content of its own, of which no one is notified.
func (f *File) IsAlone() bool {
	i, d := f.Inode(), f.dentry
	return i.IsRegular() && i.node == nil && !i.IsQueue() && !f.IsPath() && len(f.watchers) == 0 && len(i.watches()) == 0 &&
		(d.parent == nil || len(d.parent.inode.watches()) == 0)
}

// AddWatch has w notified of the events of the inode.
func (i *Inode) AddWatch(w Watch) { i.setWatches(append(slices.Clone(i.watches()), w)) }

// RemoveWatch takes AddWatch back.
func (i *Inode) RemoveWatch(w Watch) {
	i.setWatches(slices.DeleteFunc(slices.Clone(i.watches()), func(o Watch) bool { return o == w }))
}

// EachWatch calls f for the watches of the inode, until f returns false.
func (i *Inode) EachWatch(f func(Watch) bool) {
	for _, w := range i.watches() {
		if !f(w) {
			return
		}
	}
}

// notifyOwn notifies the inode's own watches.
func (i *Inode) notifyOwn(mask uint32) {
	list := i.watches()
	if len(list) == 0 {
		return
	}
	if i.IsDir() && mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) == 0 {
		mask |= unix.IN_ISDIR
	}
	notifyAll(list, Event{Mask: mask})
}

func notifyAll(list []Watch, e Event) {
	// A watch may remove itself.
	for _, w := range list {
		w.Event(e)
	}
}

// notifyFolder notifies the watches of a folder of an event of a name in it.
func (i *Inode) notifyFolder(mask, cookie uint32, name string, folder bool) {
	list := i.watches()
	if len(list) == 0 {
		return
	}
	if folder {
		mask |= unix.IN_ISDIR
	}
	notifyAll(list, Event{Mask: mask, Cookie: cookie, Name: name})
}

// Happen notifies the watches of the object of a name and, before them, the watches of
// the folder that the name is, or was, in.
func (d *Dentry) Happen(mask uint32) {
	i := d.inode
	if d.parent != nil && i.reportsToFolder(mask) {
		if list := d.parent.inode.watches(); len(list) > 0 {
			e := Event{Mask: mask, Name: d.name, Unlinked: d.gone}
			if i.IsDir() {
				e.Mask |= unix.IN_ISDIR
			}
			notifyAll(list, e)
		}
	}
	i.notifyOwn(mask)
}

// reportsToFolder reports whether watches of a folder are notified of an event of a
// file in it: not if data pass through a device or a FIFO, where it would show how
// others type.
func (i *Inode) reportsToFolder(mask uint32) bool {
	if mask&(unix.IN_ACCESS|unix.IN_MODIFY) == 0 {
		return true
	}
	return i.IsRegular() || i.IsDir() || i.IsSymlink()
}

// Opened notifies of the opening of the description. Without it, watches do not
// notice that the description ends, either.
func (f *File) Opened() {
	if f.IsPath() {
		return
	}
	f.opened = true
	f.dentry.Happen(unix.IN_OPEN)
	if f.truncated {
		f.dentry.Happen(unix.IN_MODIFY)
	}
}

// notifyClosed notifies of the end of a description.
func (f *File) notifyClosed() {
	switch {
	case !f.opened:
	case flagsWritable(f.flags):
		f.dentry.Happen(unix.IN_CLOSE_WRITE)
	default:
		f.dentry.Happen(unix.IN_CLOSE_NOWRITE)
	}
}

// notifyEnded notifies of the end of the inode: its last name and its last description
// are removed.
func (i *Inode) notifyEnded() {
	list := i.watches()
	if len(list) == 0 {
		return
	}
	i.notifyOwn(unix.IN_DELETE_SELF)
	i.setWatches(nil)
	for _, w := range list {
		w.Gone()
	}
}
