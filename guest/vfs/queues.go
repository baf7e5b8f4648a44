package vfs

import "golang.org/x/sys/unix"

// Content is the kernel object of a file (Inode.Object): it is released when neither a
// name nor a description of the file is left.
type Content interface{ Release() }

// Flusher is notified of each descriptor that a process closes, whether or not others
// of the description are left.
type Flusher interface{ Flush(process int32) }

// queueSize is the size that files of message queues have.
const queueSize = 80

// makeQueues makes /dev/mqueue, whose files are POSIX message queues.
func (fs *FS) makeQueues() {
	root := &Inode{fs: fs, super: superQueue, ino: 1, mode: unix.S_IFDIR | 0o1777, nlink: 2, dir: &directory{entries: map[string]*Dentry{}}}
	root.atime, root.mtime, root.ctime, root.btime = fs.startNS, fs.startNS, fs.startNS, fs.startNS
	fs.queues = fs.mountFolder("mqueue", root)
	fs.addMount(MountInfo{Path: "/dev/mqueue", Super: superQueue, Source: "mqueue", Options: "rw,nosuid,nodev,noexec,relatime"})
}

// mountFolder mounts the root of another file system in /dev.
func (fs *FS) mountFolder(name string, root *Inode) *Dentry {
	dev := fs.makeFolder("/dev")
	d := &Dentry{inode: root, mounted: true}
	fs.insertName(dev, d, name)
	return d
}

// Queues is the folder of the files that are message queues.
func (fs *FS) Queues() *Dentry { return fs.queues }

// IsQueue reports whether the inode is the file of a message queue. A description
// of it has no Impl until the kernel sets it.
func (i *Inode) IsQueue() bool { return i.super == superQueue && i.IsRegular() }

// TouchQueue stamps an operation on a message queue, all times if it has sent or
// received.
func (i *Inode) TouchQueue(transferred bool) {
	i.atime = i.fs.currentTime()
	i.ctime = i.atime
	if transferred {
		i.mtime = i.atime
	}
}
