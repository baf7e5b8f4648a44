package vfs

import (
	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Super is a file system as stat, statfs and /proc/mounts show it.
type Super struct {
	Dev      uint64 // st_dev
	Type     string // as in /proc/filesystems
	Magic    int64  // f_type of statfs
	ReadOnly bool   // no name can be added, nothing can be changed
}

// Devices of the file systems, as st_dev shows them. They are constants of the
// guest.
const (
	devOverlay = iota + 0x20
	devDev
	devShm
	devAnon
	devPipe
	devSocket
	devProc
	devSys
	devQueue
	devTerminals
)

var (
	superOverlay = &Super{Dev: devOverlay, Type: "overlay", Magic: unix.OVERLAYFS_SUPER_MAGIC}
	superDev     = &Super{Dev: devDev, Type: "devtmpfs", Magic: unix.TMPFS_MAGIC}
	superShm     = &Super{Dev: devShm, Type: "tmpfs", Magic: unix.TMPFS_MAGIC}
	superAnon    = &Super{Dev: devAnon, Type: "anon_inodefs", Magic: unix.ANON_INODE_FS_MAGIC}
	superPipe    = &Super{Dev: devPipe, Type: "pipefs", Magic: unix.PIPEFS_MAGIC}
	superSocket  = &Super{Dev: devSocket, Type: "sockfs", Magic: unix.SOCKFS_MAGIC}

	superQueue = &Super{Dev: devQueue, Type: "mqueue", Magic: mqueueMagic}

	superTerminals = &Super{Dev: devTerminals, Type: "devpts", Magic: unix.DEVPTS_SUPER_MAGIC}

	// SuperProc and SuperSys are the file systems of the inodes of package procfs.
	SuperProc = &Super{Dev: devProc, Type: "proc", Magic: unix.PROC_SUPER_MAGIC}
	SuperSys  = &Super{Dev: devSys, Type: "sysfs", Magic: unix.SYSFS_MAGIC}
)

// mqueueMagic is f_type of statfs for file systems of message queues (ipc/mqueue.c of
// Linux).
const mqueueMagic = 0x19800202

// SharedInSnapshot marks that a Super never changes.
func (*Super) SharedInSnapshot() {}

// Inode is a file, folder, link or other object of the guest's file system. It lives as
// long as a name, an open description or a mapping refers to it; then its storage is
// freed.
type Inode struct {
	fs       *FS
	super    *Super
	ino      uint64
	mode     uint32 // type and permissions
	uid, gid uint32
	nlink    uint32
	rdev     uint64

	atime, mtime, ctime, btime int64 // ns since 1970

	lower   *lower     // the host's object, nil if the guest made it
	dir     *directory // of folders, except made-up ones
	target  string     // of symbolic links that the guest made
	content *mm.Object // of regular files; nil until needed
	node    Node       // generates the inode's content, if it is generated

	dataChanged bool // content differs from the lower node's
	metaChanged bool // mode, owner or times differ
	timesSet    bool // times were given a value by the guest
	counted     bool // against the limit of inodes

	opens   int // descriptions
	writers int // descriptions that may write
	readers int // descriptions that may only read
	runners int // programs that are running from it
	pins    int // of a folder: descriptions that were opened by names in it
	seals   int // F_SEAL_* of a memfd; see memfd.go
	memfd   bool
	tmpfile bool // O_TMPFILE without O_EXCL, may be given a name

	locks recordLocks

	watchList []Watch // of inodes that are not made up: see watches

	// Object is the kernel's object of a FIFO or a socket, and nil until
	// the kernel sets it.
	Object any
}

// Ino is the inode number, unique within its device.
func (i *Inode) Ino() uint64 { return i.ino }

// Dev is the device number that stat shows.
func (i *Inode) Dev() uint64 { return i.super.Dev }

// Mode is the type and the permissions, as in st_mode.
func (i *Inode) Mode() uint32 { return i.mode }

// Type is the type bits of the mode: unix.S_IFREG and so on; 0 for an anonymous
// inode such as that of an eventfd.
func (i *Inode) Type() uint32 { return i.mode & unix.S_IFMT }

// Owner returns the ids of the user and the group that the inode belongs to.
func (i *Inode) Owner() (uid, gid uint32) { return i.uid, i.gid }

// IsDir reports whether the inode is a folder.
func (i *Inode) IsDir() bool { return i.Type() == unix.S_IFDIR }

// IsRegular reports whether the inode is a regular file.
func (i *Inode) IsRegular() bool { return i.Type() == unix.S_IFREG }

// IsSymlink reports whether the inode is a symbolic link.
func (i *Inode) IsSymlink() bool { return i.Type() == unix.S_IFLNK }

// Nlink is the number of names.
func (i *Inode) Nlink() uint32 { return i.nlink }

// Size is the number of bytes of a file or of a link's text; folders show one
// page.
func (i *Inode) Size() int64 {
	switch i.Type() {
	case unix.S_IFREG:
		if i.super == superQueue {
			return queueSize
		}
		if i.content != nil {
			return i.content.Size()
		}
		if i.lower != nil {
			return i.lower.attr.size
		}
		return 0
	case unix.S_IFLNK:
		if i.lower != nil {
			return i.lower.attr.size
		}
		return int64(len(i.target))
	case unix.S_IFDIR:
		if i.node != nil {
			return 0
		}
		return blockSize
	}
	return 0
}

// LockWaiters is the queue of tasks that wait for a record lock, a flock or the end of
// a lease.
func (i *Inode) LockWaiters() *wait.Queue { return &i.locks.waiters }

// newInode makes an inode with the next number, the current time and no name.
func (fs *FS) newInode(super *Super, mode, uid, gid uint32) *Inode {
	now := fs.currentTime()
	i := &Inode{
		fs: fs, super: super, ino: fs.nextNumber(), mode: mode, uid: uid, gid: gid,
		atime: now, mtime: now, ctime: now, btime: now,
	}
	if i.IsDir() {
		i.dir = &directory{entries: map[string]*Dentry{}}
		i.nlink = 2
	}
	return i
}

// firstServedIno is more than the numbers of other inodes that are counted, and less than a hash.
const firstServedIno = 1 << 32

// nextNumber is the number of a new inode.
func (fs *FS) nextNumber() uint64 {
	if fs.Serving {
		fs.servedIno++
		return firstServedIno + fs.servedIno
	}
	fs.lastIno++
	return fs.lastIno
}

// numberByName is the number of the inode of a host's file: a hash of the names that lead to it.
func (n *lower) numberByName() uint64 {
	h := xxh3.New()
	for ; n != nil; n = n.parent {
		_, _ = h.WriteString(n.name + "/")
	}
	return h.Sum64()>>16 | 1<<47
}

// newCounted makes an inode of the guest's own. ENOSPC: there are too many.
func (fs *FS) newCounted(super *Super, mode, uid, gid uint32) (*Inode, unix.Errno) {
	if fs.inodes >= fs.maxInodes {
		return nil, unix.ENOSPC
	}
	fs.inodes++
	i := fs.newInode(super, mode, uid, gid)
	i.counted = true
	return i, 0
}

// lowerInode returns the inode of a lower node. Hard links of the host have one.
func (fs *FS) lowerInode(n *lower) *Inode {
	a := &n.attr
	linked := a.nlink > 1 && !n.isDir()
	if i, ok := fs.linked[a.id]; ok && linked {
		return i
	}
	i := fs.newInode(superOverlay, a.mode, a.uid, a.gid)
	if fs.NumbersByName {
		i.ino = n.numberByName()
	}
	i.lower, i.nlink, i.rdev = n, a.nlink, a.rdev
	i.atime, i.mtime, i.ctime, i.btime = a.atime, a.mtime, a.ctime, a.mtime
	if linked {
		fs.linked[a.id] = i
	}
	return i
}

// contentObject returns the content of a regular file.
func (i *Inode) contentObject() *mm.Object {
	if i.content != nil {
		return i.content
	}
	if i.lower == nil {
		i.content = mm.NewObject(i.fs.ram, nil, 0)
		return i.content
	}
	if i.lower.attr.size == 0 {
		i.lower.noteRead()
	}
	i.fs.touched[i.lower] = true
	i.content = mm.NewObject(i.fs.ram, i.lower, i.lower.attr.size)
	i.fs.cached = append(i.fs.cached, i)
	return i.content
}

// release frees storage when neither a name nor a description is left, that of names in
// a folder included. Mappings keep the content alive by themselves.
func (i *Inode) release() {
	if i.nlink > 0 || i.opens > 0 || i.pins > 0 {
		return
	}
	i.notifyEnded()
	if i.content != nil {
		i.content.Unref()
		i.content = nil
		i.fs.removeCached(i)
	}
	if i.lower != nil && i.fs.linked[i.lower.attr.id] == i {
		delete(i.fs.linked, i.lower.attr.id)
	}
	if c, ok := i.Object.(Content); ok && i.IsQueue() {
		c.Release()
		i.Object = nil
	}
	if i.counted {
		i.counted = false
		i.fs.inodes--
	}
}

// removeName decrements the number of names.
func (i *Inode) dropName() {
	i.nlink--
	i.ctime = i.fs.currentTime()
	i.release()
}

// touchData stamps a change of content.
func (i *Inode) touchData() {
	i.mtime = i.fs.currentTime()
	i.ctime = i.mtime
	i.dataChanged, i.timesSet = true, false
}

// touchMeta stamps a change of attributes.
func (i *Inode) touchMeta() {
	i.ctime = i.fs.currentTime()
	i.metaChanged = true
}
