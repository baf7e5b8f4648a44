package vfs

import (
	"golang.org/x/sys/unix"
)

const (
	// terminalMajor is the device number of slaves of pseudo-terminals.
	terminalMajor = 136
	// terminalGroup is the group that owns terminals on Debian, tty.
	terminalGroup = 5
	// firstTerminalIno is the inode number of /dev/pts/0.
	firstTerminalIno = 3
)

// makeTerminals makes /dev/pts, whose files are the slaves of pseudo-terminals.
func (fs *FS) makeTerminals() {
	root := fs.terminalInode(1, unix.S_IFDIR|0o755)
	root.nlink, root.dir = 2, &directory{entries: map[string]*Dentry{}}
	fs.terminals = fs.mountFolder("pts", root)
	fs.addMount(MountInfo{
		Path: "/dev/pts", Super: superTerminals, Source: "devpts", Options: "rw,nosuid,noexec,relatime,gid=5,mode=620,ptmxmode=000",
	})
	ptmx := fs.terminalInode(2, unix.S_IFCHR)
	ptmx.rdev = unix.Mkdev(5, 2)
	fs.insertName(fs.terminals, &Dentry{inode: ptmx}, "ptmx")
}

func (fs *FS) terminalInode(ino uint64, mode uint32) *Inode {
	now := fs.currentTime()
	return &Inode{fs: fs, super: superTerminals, ino: ino, mode: mode, nlink: 1, atime: now, mtime: now, ctime: now, btime: now}
}

// AddTerminal makes /dev/pts/N, the file of a slave, for the user that has opened its
// master.
func (fs *FS) AddTerminal(c *Ctx, n uint32, object any) *Dentry {
	i := fs.terminalInode(uint64(n)+firstTerminalIno, unix.S_IFCHR|0o620)
	i.uid, i.gid, i.rdev, i.Object = c.Cred.FSUID, terminalGroup, unix.Mkdev(terminalMajor, n), object
	d := &Dentry{inode: i}
	fs.insertName(fs.terminals, d, decimal(uint64(n)))
	fs.terminals.inode.notifyFolder(unix.IN_CREATE, 0, d.name, false)
	return d
}

// RemoveTerminal removes the file of a slave whose master was closed.
func (fs *FS) RemoveTerminal(d *Dentry) {
	fs.removeName(d)
	d.inode.dropName()
	fs.terminals.inode.notifyFolder(unix.IN_DELETE, 0, d.name, false)
}

// HasTerminal reports whether there is a file /dev/pts/N.
func (fs *FS) HasTerminal(n uint32) bool {
	return fs.terminals.inode.dir.entries[decimal(uint64(n))] != nil
}

// TerminalDevice is the device number of a terminal: of a slave, of /dev/ptmx or of
// /dev/tty. ok is false for other inodes. A description of a terminal has no Impl
// until the kernel sets it.
func (i *Inode) TerminalDevice() (number uint64, ok bool) {
	if d, isDevice := i.node.(*device); isDevice {
		return i.rdev, d.isTerminal()
	}
	return i.rdev, i.super == superTerminals && i.Type() == unix.S_IFCHR
}

// TouchTerminal stamps a read or write, in steps of eight seconds so that the
// stamps do not show when keys were pressed.
func (i *Inode) TouchTerminal(written bool) {
	const step = 8 * nsPerSec
	stamp := &i.atime
	if written {
		stamp = &i.mtime
	}
	if now := i.fs.currentTime(); now/step != *stamp/step {
		*stamp = now / nsPerSec * nsPerSec
	}
}
